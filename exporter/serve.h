#pragma once

/* `waap serve`: runs the daemon until it is told to stop. Returns the exit code. */
int serve_main(int argc, char **argv);
