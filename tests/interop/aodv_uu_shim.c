/* Preloaded into AODV-UU's daemon: what it wants of its kernel module comes from aodv_uu_standin.py instead.
 *
 * The daemon's only ties to the module are a netlink socket of protocol 31, which here is the inherited socket whose
 * number is in AODV_UU_SOCKET, and the word "kaodv" in /proc/modules, which it looks for after having tried to load it.
 * On a closed netlink socket the daemon would spin with its signals blocked; here it ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NETLINK_AODV = 31 };

static int module = -1;

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

int socket(int domain, int type, int protocol)
{
    int (*real)(int, int, int) = next("socket");
    const char *inherited = getenv("AODV_UU_SOCKET");
    if (domain != AF_NETLINK || protocol != NETLINK_AODV || !inherited)
        return real(domain, type, protocol);
    return module = atoi(inherited);
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*real)(int, const struct sockaddr *, socklen_t) = next("bind");
    return fd == module ? 0 : real(fd, address, length);
}

int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    int (*real)(int, struct sockaddr *, socklen_t *) = next("getsockname");
    return fd == module ? 0 : real(fd, address, length);
}

/* The daemon sends to whom it last heard from, on both of its netlink sockets: the sender's address must stay. */
ssize_t recvfrom(int fd, void *buffer, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
    ssize_t (*real)(int, void *, size_t, int, struct sockaddr *, socklen_t *) = next("recvfrom");
    if (fd != module)
        return real(fd, buffer, room, flags, from, length);
    ssize_t got = recv(fd, buffer, room, flags);
    if (got == 0)
        _exit(1);
    return got;
}

FILE *fopen(const char *path, const char *mode)
{
    static char loaded[] = "kaodv 0 0 - Live 0x0\n";
    FILE *(*real)(const char *, const char *) = next("fopen");
    return strcmp(path, "/proc/modules") ? real(path, mode) : fmemopen(loaded, sizeof loaded - 1, "r");
}

/* Loads and unloads the module. */
int system(const char *command)
{
    (void)command;
    return 0;
}
