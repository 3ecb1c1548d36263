/*
 * cr_coef.h -- polynomial coefficients and tables of cr_math.h.
 *
 * Found with Sollya's fpminimax; the intervals and errors are in cr_math.h beside their use. They
 * are an implementation, not a definition: the results are correctly rounded (AR-5.1), so these may
 * change whenever the exhaustive run still passes.
 */
#ifndef OM_KERNELS_CR_COEF_H
#define OM_KERNELS_CR_COEF_H

/* expm1(r) / r on |r| <= ln2/2 */
static const double OM_EXPM1_P[] = {1.0,
                                    0x1.0000000000005p-1,
                                    0x1.555555555554p-3,
                                    0x1.5555555552119p-5,
                                    0x1.11111111173c3p-7,
                                    0x1.6c16c17f2ad13p-10,
                                    0x1.a01a017eee665p-13,
                                    0x1.a019a6af552a3p-16,
                                    0x1.71de715cd51p-19,
                                    0x1.28a281073e035p-22,
                                    0x1.ae905198b2128p-26};
/* log1p(r) / r on |r| <= 0.0297 */
static const double OM_LOG1P_P[] = {1.0,
                                    -0x1.fffffffffff9bp-2,
                                    0x1.55555555554a4p-2,
                                    -0x1.00000001246bbp-2,
                                    0x1.9999999c8c82cp-3,
                                    -0x1.555538bc01b7ap-3,
                                    0x1.249229f0ba49ep-3,
                                    -0x1.00849c1844152p-3,
                                    0x1.c8205684f478bp-4};
/* -log(erfc x) / x on [0, 3.95], 2^-53.5 */
static const double OM_ERFQ_P[] = {
    0x1.20dd750429b6dp0,    0x1.45f306dc9c945p-1,   0x1.a4f4e2a19becep-4,   -0x1.3966858bc4cbp-6,
    -0x1.b6b6bc50ae3fp-13,  0x1.bca6a7850262bp-10,  -0x1.3566f1cc6923ap-11, 0x1.b2dbb1f1e9eb6p-16,
    0x1.0e13081231d38p-14,  -0x1.ef8586f4ac187p-16, 0x1.a4d1e3fa21908p-19,  0x1.a5d21903e0a3cp-19,
    -0x1.0edaa7167ffdep-19, 0x1.1f585be87372fp-21,  0x1.7ce536e8f7115p-26,  -0x1.7acb6acc461dcp-24,
    0x1.8858cbea18e56p-25,  -0x1.00ee0460be50ap-26, 0x1.eaf6089d51de3p-29,  -0x1.622d41299ca3p-31,
    0x1.8124b7a5ee1ccp-34,  -0x1.33a35b61a323p-37,  0x1.55b7e89a15364p-41,  -0x1.d85f3a0cc9a53p-46,
    0x1.3245d4fa3a5a6p-51};
/* (1 + 2u) erfcx(u), in t = (u - 3.75) / (u + 3.75) */
static const double OM_GELU_P[] = {
    0x1.3ccda0b5d5dc2p0,   -0x1.1f367683f89a9p-3,  0x1.d5f294815cfafp-9,   0x1.510169d096b3dp-4,
    -0x1.bda9309a30305p-4, 0x1.7a14188a8a125p-4,   -0x1.e0d0fa6c45202p-5,  0x1.d0b0038631d2bp-6,
    -0x1.3f603c9109402p-7, 0x1.cc3a051ca129dp-10,  0x1.33fb6bc369949p-12,  -0x1.303e54ac5117ep-12,
    0x1.b141fc7b761f8p-15, 0x1.7728eb2c71ebp-16,   -0x1.80ae211fb227bp-17, -0x1.f216e82e23d11p-21,
    0x1.eeea58ef9c06fp-20, -0x1.8676127cfbe8fp-25, -0x1.8e3c602636c15p-22, -0x1.ad91c8890b5acp-24,
    -0x1.c98bb5d89eacp-28};
/* sin(r) / r and cos(r) in r*r on |r| <= pi/4 */
static const double OM_SIN_P[] = {1.0,
                                  -0x1.5555555555547p-3,
                                  0x1.111111110f5c9p-7,
                                  -0x1.a01a019bbe97cp-13,
                                  0x1.71de35316463cp-19,
                                  -0x1.ae5e300139fa1p-26,
                                  0x1.5d83719cb88cep-33};
static const double OM_COS_P[] = {1.0,
                                  -0.5,
                                  0x1.5555555555549p-5,
                                  -0x1.6c16c16c14c2dp-10,
                                  0x1.a01a019c347cep-16,
                                  -0x1.27e4f7b3940f9p-22,
                                  0x1.1ee9b3678e963p-29,
                                  -0x1.8f9245599b196p-37};
/* 1/c with at most 29 bits, so that m/c - 1 is exact for 24-bit m; log c within 2^-59 of a multiple
 * of 2^-43. */
#define OM_LN2_HI43 0x1.62e42fefa3800p-1
#define OM_LN2_LO43 0x1.ef35793c76730p-45
static const double OM_LOG_INVC[16] = {
    0x1.661b3b4000000p+0, 0x1.572763d000000p+0, 0x1.495fe42000000p+0, 0x1.3c9d8ff000000p+0,
    0x1.30d6c54000000p+0, 0x1.25e643d000000p+0, 0x1.1bb9145000000p+0, 0x1.1235f4d000000p+0,
    0x1.0960987000000p+0, 0x1.0000000000000p+0, 0x1.e56cd38000000p-1, 0x1.ca36b8c000000p-1,
    0x1.b1f5888000000p-1, 0x1.9c246d8000000p-1, 0x1.885a944000000p-1, 0x1.7665606000000p-1};
static const double OM_LOG_C[16] = {-0x1.57b5529ab6000p-2, -0x1.2c08955cea000p-2,
                                    -0x1.02110dffe7800p-2, -0x1.b338c05fe5000p-3,
                                    -0x1.6597e8e23e000p-3, -0x1.1abf60406b000p-3,
                                    -0x1.a52778cdc8000p-4, -0x1.1979b5f648000p-4,
                                    -0x1.26b58c2ddc000p-5, 0x0.0p+0,
                                    0x1.b4a166d240000p-5,  0x1.c69c39d788000p-4,
                                    0x1.52afc3295f000p-3,  0x1.bc5367a26a000p-3,
                                    0x1.108c661157000p-2,  0x1.4085d70fc5000p-2};

/* 2^(j/16) as the sum of two float32. */
static const float OM_EXP2_HI[16] = {
    0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
static const float OM_EXP2_LO[16] = {0.0f,
                                     0x1.9f3122p-25f,
                                     -0x1.c15742p-27f,
                                     0x1.ceac48p-25f,
                                     0x1.4636e2p-25f,
                                     0x1.824684p-25f,
                                     -0x1.593abcp-25f,
                                     -0x1.5bd5ecp-27f,
                                     0x1.9fcef4p-26f,
                                     -0x1.829fdp-25f,
                                     0x1.15506ep-27f,
                                     0x1.51f848p-27f,
                                     -0x1.a94b14p-26f,
                                     -0x1.3d56b2p-27f,
                                     -0x1.822dbcp-27f,
                                     0x1.52486cp-27f};

#endif
