// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/writing/lock_file.h"

#include "core/base/error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ponderscope {

LockFile::LockFile(const std::filesystem::path& trace, const char* wanted, const char* found)
    : path_(trace.string() + "-lock") {
    for (;;) {
        descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (descriptor_ < 0) {
            throw EnvironmentError(ErrorId::environment_failed,
                                   trace.string() + ": cannot be written in this folder (" +
                                       std::strerror(errno) + "); choose a folder that you may write to.");
        }
        if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
            const int error = errno;
            ::close(descriptor_);
            if (error == EINTR) {
                continue;
            }
            if (error == EWOULDBLOCK) {
                throw InputError(ErrorId::trace_locked, trace, wanted, found,
                                 "wait until that program ends, or choose another file");
            }
            throw EnvironmentError(ErrorId::environment_failed,
                                   trace.string() + ": cannot be locked (" + std::strerror(error) +
                                       "); choose a folder on another file system.");
        }
        // The last holder may have removed the name between our open and our lock. Then no other process
        // would see our lock.
        if (has_name()) {
            return;
        }
        ::close(descriptor_);
    }
}

bool LockFile::has_name() const {
    struct stat held {};
    struct stat named {};
    return ::fstat(descriptor_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

LockFile::~LockFile() {
    if (has_name()) { // otherwise the name is another writer's lock
        ::unlink(path_.c_str());
    }
    ::close(descriptor_);
}

} // namespace ponderscope
