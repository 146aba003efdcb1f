#include "profiler/run/app.h"

struct run_app *run_app_create(const struct run_app_config *config) {
    struct run_app *app =
        config->image != NULL ? run_app_container_create() : run_app_command_create();
    if (app != NULL) {
        app->config = *config;
    }
    return app;
}

void run_app_destroy(struct run_app *app) {
    if (app != NULL) {
        app->kind->destroy(app);
    }
}
