#include "collectors/collectors.h"

#include "collectors/host.h"

const struct collector *const collectors_all[] = {
    &host_collector,
    NULL,
};
