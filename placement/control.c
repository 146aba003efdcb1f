#include "placement/control.h"

#include <stdio.h>

int control_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    fprintf(stderr, "usage: waap control CONFIG [flags]\n");
    return 2;
}
