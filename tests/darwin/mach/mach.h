#include <stdint.h>
typedef unsigned mach_port_t, mach_msg_type_number_t, task_flavor_t;
typedef int kern_return_t, *task_info_t;
struct mach_task_basic_info {
    uint64_t virtual_size, resident_size, resident_size_max;
};
#define KERN_SUCCESS 0
#define MACH_TASK_BASIC_INFO 20
#define MACH_TASK_BASIC_INFO_COUNT                                                             \
    ((mach_msg_type_number_t)(sizeof(struct mach_task_basic_info) / sizeof(int)))
mach_port_t mach_task_self(void);
kern_return_t task_info(mach_port_t task, task_flavor_t flavor, task_info_t info,
                        mach_msg_type_number_t *count);
