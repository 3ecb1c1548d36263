/*
 * golden.h -- SHA-256 of the output of each test model at each of its size sets, in eager and in
 * Exact, on every machine, column, compiler and number of threads. Accepted when ONNX Runtime
 * agreed with the same outputs.
 */
#ifndef OM_TESTS_GOLDEN_H
#define OM_TESTS_GOLDEN_H

#include "models/models.h"

static const char *const golden_hashes[TEST_MODELS][3] = {
    {"6d6cd973796649840e595fb1167fe7a1b2992bb2bc7445b6209a8e954ca18ec5",
     "448e8667a9c1fb34e992b7bac8d3f83a2c1a2b88087e2ee95747ce6e4ba69668",
     "a57b997e5dab71863d09577bfede517eef88bc4bdeb615c84a27311d45e0f880"},
    {"3a78be6d7f4a5190f1038f0d031774820b252e111ef621d2733c7de8aae55d13",
     "d96874a2941748ae0b140aa5e7005328ddf759ac7f2f3f9dbd172f98871f421e",
     "c3f04aecd6edf2f7898708e85d64c9e344ee8dbc8f09905165769901614527b8"},
    {"0a7c1a2346ebb53aef7bf2af4452cccf57ac052257fe94db4c863025cc3ef0b7",
     "ca8b4dd8c26e1a5dc0160c1bae2803f8754d69bd1f269206256f49d16777483a",
     "b7bc6a2474a93d26e22bf7e6177f05c21448f9ca87d319376186a1a6c571517f"},
    {"9c3b55c67ad24581ae30d8f491488f2dfc0a5f8603ad5825a5953239f367b343",
     "8d3fcd9a3f069e512de7e5af8d08ba5c2c6cca399ba118c1e0a1eb3b455e1d4c",
     "368f914f663a416f45ed84bfca939f1c5fe416a1f2214418eb8838a6a37255c4"},
    {"22ff9c093c49620926dd91edbadd0e0d76a855df5952766847ba55412f8703e8",
     "8bb48bf70ed50d0e29c261c316d107b5d8cc198cca3e2ffebd3a1116eefd9795",
     "813267822a27913190da605def6ce67f6b53856bf81a33d31239bc449580b2b4"},
};

#endif
