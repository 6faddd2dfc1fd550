/* The floor: what a broker costs at least, as one thread that only relays frames of AMQP 0-9-1.
 *
 * It answers the methods that the load generator sends, walks the frames of what is published,
 * writes a basic.deliver in front of each content and copies the content once. It keeps no
 * message, checks no permission, and confirms what it has read. So its CPU time per message is
 * that of the sockets and of one look at every frame: multiples of it say what a broker adds.
 *
 *   cc -O2 -o floor bench/floor.c && ./floor        prints the port on which it listens
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { METHOD = 1, HEADER = 2, BODY = 3, FRAME_END = 0xCE, FRAME_OVERHEAD = 8, READ = 256 * 1024 };
enum { CONNECTION = 10, CHANNEL = 20, EXCHANGE = 40, QUEUE = 50, BASIC = 60, CONFIRM = 85 };
#define ID(class, method) ((uint32_t)(class) << 16 | (method))

/* Bytes up to `used`, of which those before `done` are written. */
typedef struct { uint8_t *data; size_t done, used, room; } Buffer;
typedef struct { uint8_t length; char text[255]; } Name;

typedef struct Connection {
    int fd, greeted, confirms, waits_to_write, is_dirty;
    uint64_t published, confirmed, delivered;
    Buffer in, out;
    struct Connection *next_dirty;
} Connection;

typedef struct { Connection *to; Name tag; } Consumer;

typedef struct Queue {
    Name name;
    int is_stream;
    size_t turn, count, room;
    Consumer *consumers;
    struct Queue *next;
} Queue;

typedef struct Binding { Queue *queue; Name exchange, key; struct Binding *next; } Binding;

static Queue *queues;
static Binding *bindings;
static Connection *dirty;
static int poller;

/* The queues of the last publish, and its exchange and key as they were sent. */
static uint8_t route_key[2 * 256];
static size_t route_size, route_count;
static Queue *route[1024];

static void die(const char *what) { perror(what); exit(1); }

static void reserve(Buffer *buffer, size_t more) {
    if (buffer->used + more <= buffer->room) return;
    buffer->room = (buffer->used + more) * 2;
    if (!(buffer->data = realloc(buffer->data, buffer->room))) die("realloc");
}

static void put(Buffer *buffer, const void *data, size_t size) {
    reserve(buffer, size);
    memcpy(buffer->data + buffer->used, data, size);
    buffer->used += size;
}

static void put_number(Buffer *buffer, uint64_t value, int size) {
    uint8_t bytes[8];
    for (int i = 0; i < size; i++) bytes[i] = (uint8_t)(value >> 8 * (size - 1 - i));
    put(buffer, bytes, size);
}

static uint64_t number(const uint8_t *p, int size) {
    uint64_t value = 0;
    while (size--) value = value << 8 | *p++;
    return value;
}

static const uint8_t *take_name(const uint8_t *p, Name *name) {
    name->length = *p;
    memcpy(name->text, p + 1, *p);
    return p + 1 + *p;
}

static int same(const Name *one, const Name *other) {
    return one->length == other->length && !memcmp(one->text, other->text, one->length);
}

static void mark(Connection *connection) {
    if (connection->is_dirty) return;
    connection->is_dirty = 1;
    connection->next_dirty = dirty;
    dirty = connection;
}

static size_t begin_method(Buffer *out, int channel, uint32_t id) {
    size_t start = out->used;
    put_number(out, METHOD, 1);
    put_number(out, channel, 2);
    put_number(out, 0, 4);
    put_number(out, id, 4);
    return start;
}

static void end_method(Buffer *out, size_t start) {
    uint32_t size = htonl((uint32_t)(out->used - start - 7));
    memcpy(out->data + start + 3, &size, 4);
    put_number(out, FRAME_END, 1);
}

static Queue *queue_named(const Name *name) {
    for (Queue *each = queues; each; each = each->next)
        if (same(&each->name, name)) return each;
    Queue *queue = calloc(1, sizeof *queue);
    if (!queue) die("calloc");
    queue->name = *name;
    queue->next = queues;
    return queues = queue;
}

/* A pattern of the benchmark is a key, nothing (fanout), or a key whose last word is a star. */
static int matches(const Name *pattern, const Name *key) {
    size_t length = pattern->length;
    if (!length || same(pattern, key)) return 1;
    return pattern->text[length - 1] == '*' && key->length >= length
        && !memcmp(pattern->text, key->text, length - 1);
}

static void find_route(const uint8_t *names, size_t size) {
    Name exchange, key;
    take_name(take_name(names, &exchange), &key);
    memcpy(route_key, names, size);
    route_size = size;
    route_count = 0;
    if (!exchange.length) {
        route[route_count++] = queue_named(&key);
        return;
    }
    for (Binding *each = bindings; each; each = each->next)
        if (same(&each->exchange, &exchange) && matches(&each->key, &key) && route_count < 1024)
            route[route_count++] = each->queue;
}

static void deliver(Consumer *consumer, int channel, const uint8_t *names, size_t names_size,
                    const uint8_t *content, size_t content_size) {
    Buffer *out = &consumer->to->out;
    reserve(out, content_size + names_size + 512);
    size_t start = begin_method(out, channel, ID(BASIC, 60));
    put(out, &consumer->tag, 1 + consumer->tag.length);
    put_number(out, ++consumer->to->delivered, 8);
    put_number(out, 0, 1);
    put(out, names, names_size);
    end_method(out, start);
    put(out, content, content_size);
    mark(consumer->to);
}

static void publish(int channel, const uint8_t *names, size_t names_size,
                    const uint8_t *content, size_t content_size) {
    if (names_size != route_size || memcmp(names, route_key, names_size))
        find_route(names, names_size);
    for (size_t i = 0; i < route_count; i++) {
        Queue *queue = route[i];
        if (queue->is_stream)
            for (size_t n = 0; n < queue->count; n++)
                deliver(&queue->consumers[n], channel, names, names_size, content, content_size);
        else if (queue->count) {
            if (++queue->turn >= queue->count) queue->turn = 0;
            deliver(&queue->consumers[queue->turn], channel, names, names_size, content,
                    content_size);
        }
    }
}

static void consume(Connection *connection, const uint8_t *p, Buffer *out) {
    Name name, tag;
    take_name(take_name(p + 2, &name), &tag);
    if (!tag.length) tag.length = (uint8_t)sprintf(tag.text, "floor-%p", (void *)connection);
    Queue *queue = queue_named(&name);
    if (queue->count == queue->room) {
        queue->room = queue->room * 2 + 8;
        queue->consumers = realloc(queue->consumers, queue->room * sizeof *queue->consumers);
        if (!queue->consumers) die("realloc");
    }
    queue->consumers[queue->count++] = (Consumer){connection, tag};
    put(out, &tag, 1 + tag.length);
}

static void bind_queue(const uint8_t *p) {
    Binding *binding = calloc(1, sizeof *binding);
    if (!binding) die("calloc");
    Name name;
    take_name(take_name(take_name(p + 2, &name), &binding->exchange), &binding->key);
    binding->queue = queue_named(&name);
    binding->next = bindings;
    bindings = binding;
    route_size = 0;
}

static void delete_exchange(const uint8_t *p) {
    Name name;
    take_name(p + 2, &name);
    for (Binding **each = &bindings; *each;) {
        Binding *binding = *each;
        if (same(&binding->exchange, &name)) { *each = binding->next; free(binding); }
        else each = &binding->next;
    }
    route_size = 0;
}

static void forget_consumers(Connection *connection) {
    for (Queue *queue = queues; queue; queue = queue->next) {
        size_t kept = 0;
        for (size_t n = 0; n < queue->count; n++)
            if (queue->consumers[n].to != connection)
                queue->consumers[kept++] = queue->consumers[n];
        queue->count = kept;
    }
}

/* Answer a method other than basic.publish; every request that has a reply gets it. */
static void answer(Connection *connection, int channel, uint32_t id, const uint8_t *p, size_t size) {
    Buffer *out = &connection->out;
    Name name;
    if (id == ID(BASIC, 80) || id == ID(CONNECTION, 31) || id == ID(QUEUE, 21)) return;
    size_t start = begin_method(out, channel, id + 1);
    switch (id) {
    case ID(CONNECTION, 11):  /* start-ok; tune */
        out->used = start;
        start = begin_method(out, 0, ID(CONNECTION, 30));
        put_number(out, 2047, 2);
        put_number(out, 131072, 4);
        put_number(out, 0, 2);
        break;
    case ID(CONNECTION, 40): put_number(out, 0, 1); break;
    case ID(CHANNEL, 10): put_number(out, 0, 4); break;
    case ID(QUEUE, 10): {
        take_name(p + 2, &name);
        queue_named(&name)->is_stream = memmem(p, size, "stream", 6) != NULL;
        put(out, &name, 1 + name.length);
        put_number(out, 0, 8);
        break;
    }
    case ID(QUEUE, 20): {
        const uint8_t *no_wait = p + 2;
        for (int i = 0; i < 3; i++) no_wait += 1 + *no_wait;
        bind_queue(p);
        if (*no_wait & 1) { out->used = start; return; }
        break;
    }
    case ID(QUEUE, 40):
        take_name(p + 2, &name);
        queue_named(&name)->count = 0;
        put_number(out, 0, 4);
        break;
    case ID(EXCHANGE, 20): delete_exchange(p); break;
    case ID(BASIC, 20): consume(connection, p, out); break;
    case ID(CONFIRM, 10): connection->confirms = 1; break;
    }
    end_method(out, start);
    mark(connection);
}

/* Take one frame, or one publish with its content; the number of bytes, 0 if there are too few. */
static size_t take_one(Connection *connection, const uint8_t *p, size_t left) {
    if (left < FRAME_OVERHEAD) return 0;
    size_t size = number(p + 3, 4) + FRAME_OVERHEAD;
    if (left < size) return 0;
    if (p[0] != METHOD) return size;
    int channel = (int)number(p + 1, 2);
    uint32_t id = (uint32_t)number(p + 7, 4);
    if (id != ID(BASIC, 40)) {
        answer(connection, channel, id, p + 11, size - FRAME_OVERHEAD - 4);
        return size;
    }
    const uint8_t *content = p + size;
    if (left < size + FRAME_OVERHEAD + 14) return 0;
    uint64_t missing = number(content + 11, 8);
    size_t content_size = number(content + 3, 4) + FRAME_OVERHEAD;
    while (missing) {
        if (left < size + content_size + FRAME_OVERHEAD) return 0;
        size_t part = number(content + content_size + 3, 4);
        content_size += part + FRAME_OVERHEAD;
        missing -= part;
    }
    if (left < size + content_size) return 0;
    const uint8_t *names = p + 13, *end = names + 1 + *names;
    end += 1 + *end;
    connection->published++;
    publish(channel, names, (size_t)(end - names), content, content_size);
    return size + content_size;
}

static void take_input(Connection *connection) {
    Buffer *in = &connection->in;
    size_t offset = 0, taken;
    if (!connection->greeted) {
        if (in->used < 8) return;
        offset = 8;
        connection->greeted = 1;
        size_t start = begin_method(&connection->out, 0, ID(CONNECTION, 10));
        put_number(&connection->out, 9, 2);
        put_number(&connection->out, 0, 4);
        put_number(&connection->out, 5, 4);
        put(&connection->out, "PLAIN", 5);
        put_number(&connection->out, 5, 4);
        put(&connection->out, "en_US", 5);
        end_method(&connection->out, start);
        mark(connection);
    }
    while ((taken = take_one(connection, in->data + offset, in->used - offset))) offset += taken;
    memmove(in->data, in->data + offset, in->used -= offset);
    if (connection->confirms && connection->published > connection->confirmed) {
        size_t start = begin_method(&connection->out, 1, ID(BASIC, 80));
        put_number(&connection->out, connection->confirmed = connection->published, 8);
        put_number(&connection->out, 1, 1);
        end_method(&connection->out, start);
        mark(connection);
    }
}

static void end_connection(Connection *connection) {
    forget_consumers(connection);
    close(connection->fd);
    free(connection->in.data);
    free(connection->out.data);
    free(connection);
}

static void watch(Connection *connection, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(poller, operation, connection->fd, &event)) die("epoll_ctl");
}

static void write_output(Connection *connection) {
    Buffer *out = &connection->out;
    size_t left = out->used - out->done;
    ssize_t sent = left ? send(connection->fd, out->data + out->done, left, MSG_NOSIGNAL) : 0;
    if (sent < 0) sent = errno == EAGAIN ? 0 : (ssize_t)left;
    out->done += (size_t)sent;
    if (out->done == out->used) out->done = out->used = 0;
    if (connection->waits_to_write != (out->used > 0)) {
        connection->waits_to_write = out->used > 0;
        watch(connection, EPOLL_CTL_MOD, EPOLLIN | (out->used ? EPOLLOUT : 0));
    }
}

/* Read what there is; 0 at the end of the connection. */
static int read_input(Connection *connection) {
    reserve(&connection->in, READ);
    ssize_t got = recv(connection->fd, connection->in.data + connection->in.used, READ, 0);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    connection->in.used += (size_t)got;
    take_input(connection);
    return 1;
}

static void accept_one(int listener) {
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *connection = calloc(1, sizeof *connection);
    if (!connection) die("calloc");
    connection->fd = fd;
    watch(connection, EPOLL_CTL_ADD, EPOLLIN);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1024)
        || getsockname(listener, (struct sockaddr *)&address, &length)) die("listen");
    poller = epoll_create1(0);
    struct epoll_event events[64], accepts = {.events = EPOLLIN, .data.ptr = NULL};
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &accepts)) die("epoll");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(poller, events, 64, -1);
        Connection *gone[64];
        int gone_count = 0;
        for (int i = 0; i < count; i++) {
            Connection *connection = events[i].data.ptr;
            if (!connection) { accept_one(listener); continue; }
            if (events[i].events & EPOLLOUT) mark(connection);
            if (events[i].events & ~(uint32_t)EPOLLOUT && !read_input(connection))
                gone[gone_count++] = connection;
        }
        while (dirty) {
            Connection *connection = dirty;
            dirty = connection->next_dirty;
            connection->is_dirty = 0;
            write_output(connection);
        }
        while (gone_count) end_connection(gone[--gone_count]);
    }
}
