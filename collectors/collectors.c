#include "collectors/collectors.h"

#include "collectors/host.h"
#include "collectors/textfile.h"

const struct collector *const collectors_all[] = {
    &host_collector,
    &textfile_collector,
    NULL,
};
