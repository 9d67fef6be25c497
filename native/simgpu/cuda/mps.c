/* Clients of MPS. Where CUDA_MPS_PIPE_DIRECTORY has a control daemon's socket, cuInit asks it to be let in, as one line,
 * and keeps the connection: it is how the daemon knows that the client is there, and the client that its server is.
 *
 *   CLIENT <pid> <percent>            what the client's own CUDA_MPS_ACTIVE_THREAD_PERCENTAGE allows at most
 *   OK <percent> <uuid>=<MiB> ...     its part of the processors, and what it may hold on each GPU; 0 is no limit
 *   ERROR <number>                    an error of CUDA
 *
 * A line that comes later says that the server has failed. */
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

#include "driver.h"

#define DEFAULT_DIRECTORY "/tmp/nvidia-mps"
#define CONNECTION_FAILED ((CUresult)805)
#define RPC_FAILURE ((CUresult)806)
#define ANSWER_S 10

/* By way of the folder's descriptor, since addresses of sockets are short. -1 with errno. */
static int connect_to(const char *directory) {
    int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/control", folder);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = connection < 0 || connect(connection, (struct sockaddr *)&at, sizeof at) != 0 ? errno : 0;
    if (failed != 0 && connection >= 0) close(connection);
    close(folder);
    errno = failed;
    return failed != 0 ? -1 : connection;
}

/* One line, without its end. False when none came. */
static bool read_line(int connection, char *line, size_t size) {
    struct timeval most = {.tv_sec = ANSWER_S};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    for (size_t length = 0; length < size; length++) {
        if (recv(connection, line + length, 1, 0) != 1) return false;
        if (line[length] == '\n') {
            line[length] = '\0';
            return true;
        }
    }
    return false;
}

static uint32_t own_percent(void) {
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percent = text != NULL ? atof(text) : 100;
    return percent > 0 && percent < 100 ? (percent < 1 ? 1 : (uint32_t)percent) : 100;
}

static bool served(const machine *m, uint32_t gpu, const char *answer, uint32_t *limit_mib) {
    const char *uuid = machine_gpu(m, gpu)->uuid, *found = strstr(answer, uuid);
    size_t length = strlen(uuid);
    return found != NULL && found[length] == '=' && sscanf(found + length + 1, "%u", limit_mib) == 1;
}

CUresult mps_join(const machine *m, uint32_t slot, uint32_t *gpus, uint32_t *count, int *connection) {
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char line[2048];
    unsigned int percent = 0, error = 0;
    int made = connect_to(directory != NULL ? directory : DEFAULT_DIRECTORY);
    if (made < 0) return errno == ENOENT || errno == ENOTDIR ? CUDA_SUCCESS : CONNECTION_FAILED;
    int length = snprintf(line, sizeof line, "CLIENT %d %u\n", (int)getpid(), own_percent());
    bool answered = send(made, line, (size_t)length, MSG_NOSIGNAL) == length && read_line(made, line, sizeof line);
    if (answered && sscanf(line, "OK %u", &percent) == 1 && percent > 0 && percent <= 100) {
        uint32_t kept = 0, limit;
        for (uint32_t i = 0; i < *count; i++) {
            if (!served(m, gpus[i], line, &limit)) continue;
            lane_open(m, gpus[i], slot, percent, limit);
            gpus[kept++] = gpus[i];
        }
        *count = kept;
        *connection = made + 1;
        if (kept > 0) return CUDA_SUCCESS;
        *connection = 0;
        error = CUDA_ERROR_NO_DEVICE;
    } else if (!answered || sscanf(line, "ERROR %u", &error) != 1) error = CONNECTION_FAILED;
    close(made);
    return (CUresult)error;
}

CUresult mps_check(void) {
    char byte;
    ssize_t got = recv(driver.mps - 1, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? CUDA_SUCCESS : RPC_FAILURE;
}
