#include "collectors/collectors.h"

const struct collector *const collectors_all[] = {
    NULL,
};
