#include <stdio.h>

#include "tests/fakes/plant.h"

int main(int argc, char **argv) {
    struct error err;
    if (argc != 3) {
        fprintf(stderr, "usage: %s MANIFEST DIRECTORY\n", argv[0]);
        return 2;
    }
    if (plant(argv[1], argv[2], &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}
