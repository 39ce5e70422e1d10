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

typedef uint32_t natural_t;
typedef mach_port_t host_t;
typedef int host_flavor_t, *host_info64_t;
/* Has only those members of Apple's structure that the project uses. */
typedef struct {
    natural_t free_count, inactive_count;
} vm_statistics64_data_t;
#define HOST_VM_INFO64 4
#define HOST_VM_INFO64_COUNT                                                                   \
    ((mach_msg_type_number_t)(sizeof(vm_statistics64_data_t) / sizeof(int)))
extern unsigned long vm_kernel_page_size;
host_t mach_host_self(void);
kern_return_t host_statistics64(host_t host, host_flavor_t flavor, host_info64_t info,
                                mach_msg_type_number_t *count);
