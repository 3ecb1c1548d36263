/*
 * load.c -- dlopen of the shared library and of a plug-in with the static one; dlclose before a
 * thread that used them ends.
 *   load LIBRARY PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "onemodel.h"

static int failed;
static void verdict(const char *name, int ok) {
    printf("[ %s ] %s\n", ok ? "      OK" : " FAILED  ", name);
    failed += !ok;
}

static void *symbol(void *lib, const char *name) {
    void *p = lib ? dlsym(lib, name) : NULL;
    if (!p) printf("%s\n", dlerror());
    return p;
}

typedef struct visit {
    void *lib;
    float got;
    pthread_barrier_t used, closed;
} visit;

/* Uses the library, lets the main thread close it, and ends: what was kept for it is freed now. */
static void *use_library(void *arg) {
    visit *v = arg;
    om_tensor *(*full)(double, om_dtype, int, const int64_t *);
    om_tensor *(*sum)(om_tensor *, int, const int64_t *, bool);
    float (*item)(const om_tensor *);
    void *f = symbol(v->lib, "om_full"), *s = symbol(v->lib, "om_sum"),
         *i = symbol(v->lib, "om_item_f32");
    if (f && s && i) {
        memcpy(&full, &f, sizeof f);
        memcpy(&sum, &s, sizeof s);
        memcpy(&item, &i, sizeof i);
        v->got = item(sum(full(2.0, OM_F32, OM_DIMS(300, 300)), 0, NULL, false));
    }
    pthread_barrier_wait(&v->used);
    pthread_barrier_wait(&v->closed);
    return NULL;
}
static void *use_plugin(void *arg) {
    visit *v = arg;
    float (*plugin)(void);
    void *f = symbol(v->lib, "plugin_sum");
    if (f) {
        memcpy(&plugin, &f, sizeof f);
        v->got = plugin();
    }
    pthread_barrier_wait(&v->used);
    pthread_barrier_wait(&v->closed);
    return NULL;
}

static void visit_and_close(const char *opened, const char *closed, const char *path,
                            void *(*use)(void *)) {
    visit v = {.lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!v.lib) printf("%s\n", dlerror());
    pthread_t t;
    pthread_barrier_init(&v.used, NULL, 2);
    pthread_barrier_init(&v.closed, NULL, 2);
    if (v.lib && pthread_create(&t, NULL, use, &v) == 0) {
        pthread_barrier_wait(&v.used);
        dlclose(v.lib);
        pthread_barrier_wait(&v.closed);
        pthread_join(t, NULL);
    }
    verdict(opened, v.got == 180000.0f);
    verdict(closed, v.got == 180000.0f); // the thread has ended
}

int main(int n, char **args) {
    if (n != 3) return 2;
    visit_and_close("dlopen_of_the_shared_library", "dlclose_before_a_thread_ends", args[1],
                    use_library);
    visit_and_close("a_plugin_with_the_static_library", "a_plugin_is_closed_before_a_thread_ends",
                    args[2], use_plugin);
    return failed != 0;
}
