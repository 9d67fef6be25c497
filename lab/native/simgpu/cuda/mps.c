#include "cuda/mps.h"

#include "core/lane.h"
#include "cuda/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/tmp/nvidia-mps"
#define CONNECTION_FAILED ((CUresult)805)
#define RPC_FAILURE ((CUresult)806)
#define ANSWER_S 10

/* Through the folder's descriptor, since addresses of sockets are short. -1 with errno. */
static int connect_to(const char *directory)
{
    int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/control", folder);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = connection < 0 || connect(connection, (struct sockaddr *)&at, sizeof at) != 0 ? errno : 0;
    if (failed != 0 && connection >= 0)
        close(connection);
    close(folder);
    errno = failed;
    return failed != 0 ? -1 : connection;
}

/* One line, without its end. False when none arrived. */
static bool read_line(int connection, char *line, size_t size)
{
    struct timeval most = {.tv_sec = ANSWER_S};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    for (size_t length = 0; length < size; length++) {
        if (recv(connection, line + length, 1, 0) != 1)
            return false;
        if (line[length] == '\n') {
            line[length] = '\0';
            return true;
        }
    }
    return false;
}

static uint32_t read_own_percent(void)
{
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percent = text != NULL ? atof(text) : 100;
    if (!(percent > 0 && percent < 100)) /* or not a number */
        return 100;
    return percent < 1 ? 1 : (uint32_t)percent;
}

/* What the client's own CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, such as 0=4096M,1=1G, allows on a GPU; 0: anything. */
static uint32_t read_own_limit(uint32_t ordinal)
{
    const char *text = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    unsigned int number, amount;
    char unit = 'B';
    while (text != NULL && sscanf(text, "%u=%u%c", &number, &amount, &unit) >= 2) {
        if (number == ordinal && unit == 'G')
            return amount << 10;
        if (number == ordinal && unit == 'M')
            return amount;
        if (number == ordinal)
            return amount >> 10 >> (unit == 'K' ? 0 : 10);
        text = strchr(text, ',');
        text = text != NULL ? text + 1 : NULL;
    }
    return 0;
}

/* Whether the server serves a GPU, and how much the client may hold there. */
static bool is_served(const struct machine *m, uint32_t gpu, const char *answer, uint32_t *limit_mib)
{
    const char *uuid = machine_gpu(m, gpu)->uuid, *found = strstr(answer, uuid);
    size_t length = strlen(uuid);
    return found != NULL && found[length] == '=' && sscanf(found + length + 1, "%u", limit_mib) == 1;
}

/* Sends the client's line and reads the answer; `*percent` is its part of the processors. */
static CUresult request_part(int connection, char *line, size_t size, unsigned int *percent)
{
    unsigned int error;
    int length = snprintf(line, size, "CLIENT %d %u\n", (int)getpid(), read_own_percent());
    if (send(connection, line, (size_t)length, MSG_NOSIGNAL) != length || !read_line(connection, line, size))
        return CONNECTION_FAILED;
    if (sscanf(line, "OK %u", percent) == 1 && *percent > 0 && *percent <= 100)
        return CUDA_SUCCESS;
    return sscanf(line, "ERROR %u", &error) == 1 && error != 0 ? (CUresult)error : CONNECTION_FAILED;
}

/* Opens a lane on each GPU that the server serves. Returns how many these are; they are now first in the list. */
static uint32_t open_lanes(const struct machine *m, uint32_t slot, uint32_t *gpus, uint32_t count, const char *answer,
                           unsigned int percent)
{
    uint32_t served = 0, limit_mib;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_served(m, gpus[i], answer, &limit_mib))
            continue;
        uint32_t own = read_own_limit(served);
        lane_open(m, gpus[i], slot, percent, own != 0 && (limit_mib == 0 || own < limit_mib) ? own : limit_mib);
        gpus[served++] = gpus[i];
    }
    return served;
}

CUresult mps_join(const struct machine *m, uint32_t slot, uint32_t *gpus, uint32_t *count, int *connection)
{
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char line[2048];
    unsigned int percent;
    int made = connect_to(directory != NULL ? directory : DEFAULT_DIRECTORY);
    if (made < 0)
        return errno == ENOENT || errno == ENOTDIR ? CUDA_SUCCESS : CONNECTION_FAILED;
    CUresult result = request_part(made, line, sizeof line, &percent);
    if (result == CUDA_SUCCESS) {
        *count = open_lanes(m, slot, gpus, *count, line, percent);
        result = *count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
    }
    if (result == CUDA_SUCCESS)
        *connection = made + 1;
    else
        close(made);
    return result;
}

CUresult mps_check(void)
{
    char byte;
    if (driver.mps == 0)
        return CUDA_SUCCESS;
    ssize_t got = recv(driver.mps - 1, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? CUDA_SUCCESS : RPC_FAILURE;
}
