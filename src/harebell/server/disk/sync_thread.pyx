"""Write and sync in a thread without Python; see `sync_thread.py`.

The thread never waits for the interpreter's lock, and never holds it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport EINTR, errno

import os

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <signal.h>
    #include <stdint.h>
    #include <time.h>
    #include <unistd.h>

    #define HAREBELL_JOBS 64
    /* Octets of a file that the disk may be writing while more are written to it. */
    #define HAREBELL_IN_FLIGHT (4 << 20)

    typedef struct {
        pthread_t thread;
        sem_t begin;
        int event, over, writes, syncs, unsynced;
        struct {
            int file, last;
            const char *path, *data;
            /* Bytes that there are, and that are written: the same again and again. */
            size_t piece, size;
            off_t start;
        } write[HAREBELL_JOBS];
        int sync[HAREBELL_JOBS];
        int error, place, syncing;
        double sync_seconds;
    } harebell_performer;

    static double harebell_seconds(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    }

    /* Makes the disk write what the page cache has got. Waits only for what is far behind, but for
       all of a file that gets nothing more, as the next sync would have to wait for it. An error is
       that of a sync, which the kernel reports once; but some systems do not have the call, and
       then the later sync does everything. */
    static void harebell_start_writing(harebell_performer *self) {
        for (int i = 0; i < self->writes; i++) {
            const int file = self->write[i].file;
            const off_t at = self->write[i].start, size = (off_t)self->write[i].size;
            const off_t behind = self->write[i].last ? at + size : at - HAREBELL_IN_FLIGHT;
            if (sync_file_range(file, at, size, SYNC_FILE_RANGE_WRITE) == 0
                && (behind <= 0
                    || sync_file_range(file, 0, behind, SYNC_FILE_RANGE_WAIT_BEFORE) == 0))
                continue;
            if (errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM) return;
            self->error = errno;
            self->place = i;
            return;
        }
    }

    static void harebell_perform(harebell_performer *self) {
        self->error = self->place = self->syncing = 0;
        for (int i = 0; i < self->writes; i++) {
            const char *data = self->write[i].data;
            const size_t piece = self->write[i].piece;
            size_t left = self->write[i].size, from = 0;
            off_t at = self->write[i].start;
            if (self->write[i].path != NULL) {
                do {
                    self->write[i].file =
                        open(self->write[i].path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                } while (self->write[i].file < 0 && errno == EINTR);
                if (self->write[i].file < 0) {
                    self->error = errno;
                    self->place = i;
                    return;
                }
            }
            while (left > 0) {
                const size_t most = left < piece - from ? left : piece - from;
                ssize_t done = pwrite(self->write[i].file, data + from, most, at);
                if (done <= 0) {
                    if (done < 0 && errno == EINTR) continue;
                    self->error = done < 0 ? errno : ENOSPC;
                    self->place = i;
                    return;
                }
                from = (from + (size_t)done) % piece;
                at += done; left -= (size_t)done;
            }
        }
        self->syncing = 1;
        if (self->unsynced) {
            harebell_start_writing(self);
            return;
        }
        const double began = harebell_seconds();
        for (int i = 0; i < self->syncs; i++) {
            if (fdatasync(self->sync[i]) != 0) {
                self->error = errno;
                self->place = i;
                break;
            }
        }
        self->sync_seconds = harebell_seconds() - began;
    }

    static void *harebell_performing(void *argument) {
        harebell_performer *self = argument;
        const uint64_t one = 1;
        for (;;) {
            while (sem_wait(&self->begin) != 0) { }
            if (self->over) return NULL;
            harebell_perform(self);
            while (write(self->event, &one, sizeof one) < 0 && errno == EINTR) { }
        }
    }

    static int harebell_performer_start(harebell_performer *self, int event) {
        sigset_t all, before;
        int error;
        self->event = event;
        self->over = 0;
        self->sync_seconds = 0;
        if (sem_init(&self->begin, 0, 0) != 0) return errno;
        /* Signals are for the main thread. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&self->thread, NULL, harebell_performing, self);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return error;
    }

    static void harebell_performer_begin(harebell_performer *self) { sem_post(&self->begin); }

    static void harebell_performer_stop(harebell_performer *self) {
        self->over = 1;
        sem_post(&self->begin);
        pthread_join(self->thread, NULL);
        sem_destroy(&self->begin);
    }
    """
    ctypedef long off_t
    ctypedef struct harebell_write:
        int file, last
        const char *path
        const char *data
        size_t piece, size
        off_t start
    ctypedef struct harebell_performer:
        int over, writes, syncs, unsynced
        harebell_write write[64]
        int sync[64]
        int error, place, syncing
        double sync_seconds
    int HAREBELL_JOBS
    int harebell_performer_start(harebell_performer *self, int event)
    void harebell_performer_begin(harebell_performer *self)
    void harebell_performer_stop(harebell_performer *self) nogil

cdef extern from "unistd.h":
    int close(int file) nogil
    ssize_t read(int file, void *data, size_t size)


cdef class SyncThread:
    cdef harebell_performer _work
    cdef int _event
    cdef bint _alive
    cdef list _kept
    cdef dict _paths
    cdef readonly dict opened

    def __init__(self):
        self._event = os.eventfd(0, os.EFD_CLOEXEC)
        error = harebell_performer_start(&self._work, self._event)
        if error:
            os.close(self._event)
            raise OSError(error, os.strerror(error))
        self._alive = True
        self.opened = {}

    def fileno(self):
        return self._event

    @property
    def sync_seconds(self):
        return self._work.sync_seconds

    def begin(
        self, list writes, list syncs, *, bint unsynced=False, dict paths=None, last=(),
        dict repeated=None,
    ):
        cdef int at = 0, file
        cdef off_t start
        cdef bytes data
        cdef tuple write
        if len(writes) > HAREBELL_JOBS or len(syncs) > HAREBELL_JOBS:
            raise ValueError(f"more than {HAREBELL_JOBS} writes or syncs at once")
        for write in writes:
            file, data, start = write
            self._work.write[at].file = file
            self._work.write[at].path = NULL
            self._work.write[at].last = 0
            self._work.write[at].data = PyBytes_AS_STRING(data)
            self._work.write[at].piece = <size_t>PyBytes_GET_SIZE(data)
            self._work.write[at].size = self._work.write[at].piece
            self._work.write[at].start = start
            at += 1
        self._work.writes = at
        if repeated:
            for place, size in repeated.items():
                self._work.write[<int>place].size = size
        self._paths = None
        if paths:
            self._paths = {place: os.fsencode(path) for place, path in paths.items()}
            for place, data in self._paths.items():
                self._work.write[<int>place].path = PyBytes_AS_STRING(data)
                self._work.write[<int>place].file = -1
        for place in last:
            self._work.write[<int>place].last = 1
        at = 0
        for file in syncs:
            self._work.sync[at] = file
            at += 1
        self._work.syncs = at
        self._work.unsynced = unsynced
        # The thread reads these buffers until `end`.
        self._kept = writes
        harebell_performer_begin(&self._work)

    def end(self):
        cdef long long count
        while read(self._event, &count, sizeof(count)) < 0:
            if errno != EINTR:
                raise OSError(errno, os.strerror(errno))
        self._kept = None
        self.opened = {}
        if self._paths is not None:
            self.opened = {place: self._work.write[<int>place].file for place in self._paths}
            self._paths = None
        if self._work.error == 0:
            return None
        for file in self.opened.values():
            if file >= 0:
                os.close(file)
        self.opened = {}
        return self._work.error, self._work.place, bool(self._work.syncing)

    def stop(self):
        if self._alive:
            self._alive = False
            with nogil:
                harebell_performer_stop(&self._work)
                close(self._event)
            self._kept = None

    def __dealloc__(self):
        if self._alive:
            with nogil:
                harebell_performer_stop(&self._work)
                close(self._event)
