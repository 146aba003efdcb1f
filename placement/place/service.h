#pragma once

/* `waap place [flags]`: answers which node would run a model fastest. Returns the exit code. */
int place_service_main(int argc, char **argv);
