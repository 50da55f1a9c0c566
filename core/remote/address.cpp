// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/address.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <algorithm>
#include <cstdlib>

namespace ponderscope::remote {
namespace {

constexpr std::string_view scheme = "ssh://";

[[noreturn]] void refuse(const std::string& url, const std::string& found) {
    throw InputError(ErrorId::usage_value, url, "ssh://HOST/PATH, or ssh://USER@HOST:PORT/PATH", found,
                     "write the host as ssh knows it, then the path of the file on that host");
}

std::string environment(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : otherwise;
}

} // namespace

bool is_remote(const std::filesystem::path& path) {
    return path.native().starts_with(scheme);
}

std::string Address::machine() const {
    const bool brackets = host.find(':') != std::string::npos;
    const std::size_t at = host.rfind('@') + 1; // 0: no user
    return std::string(scheme) + host.substr(0, at) + (brackets ? "[" : "") + host.substr(at) +
           (brackets ? "]" : "") + (port != 0 ? ":" + std::to_string(port) : "");
}

Address parse_address(const std::string& url) {
    if (!is_remote(url)) {
        refuse(url, "a name without ssh://");
    }
    const std::size_t slash = url.find('/', scheme.size());
    std::string place = url.substr(scheme.size(), slash - scheme.size());
    Address address;
    address.path = slash == std::string::npos ? "/" : url.substr(slash);
    if (address.path.find('\0') != std::string::npos) {
        refuse(url, "a path with a NUL byte");
    }
    const std::size_t at = place.rfind('@');
    const std::string user = at == std::string::npos ? std::string() : place.substr(0, at + 1);
    std::string host = place.substr(user.size());
    std::string port;
    if (host.starts_with('[')) {
        const std::size_t end = host.find(']');
        if (end == std::string::npos || (end + 1 < host.size() && host[end + 1] != ':')) {
            refuse(url, "a '[' without its ']'");
        }
        port = end + 1 < host.size() ? host.substr(end + 2) : "";
        host = host.substr(1, end - 1);
    } else if (const std::size_t colon = host.find(':'); colon != std::string::npos) {
        port = host.substr(colon + 1);
        host.resize(colon);
    }
    if (!port.empty()) {
        address.port = parse_number<int>(port).value_or(0);
        if (address.port < 1 || address.port > 65535) {
            refuse(url, "the port '" + port + "'");
        }
    }
    const auto plain = [](const std::string& text, std::string_view more) {
        return std::all_of(text.begin(), text.end(), [&](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   static_cast<unsigned char>(c) >= 0x80 || more.find(c) != std::string_view::npos;
        });
    };
    // ssh would read a text that begins with '-' as an option.
    if (host.empty() || host.starts_with('-') || user.starts_with('-') || user == "@" ||
        !plain(host, "._-:%") || !plain(user, "._-@+\\")) {
        refuse(url, host.empty() ? "no host" : "the host '" + user + host + "'");
    }
    address.host = user + host;
    return address;
}

std::string shell_quoted(const std::string& word) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%#";
    if (!word.empty() && word.front() != '#' && word.find_first_not_of(plain) == std::string::npos) {
        return word;
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

Settings& settings() {
    static Settings all{environment("PONDERSCOPE_SSH", "ssh"),
                        environment("PONDERSCOPE_REMOTE", "ponderscope"), 30, true};
    return all;
}

std::vector<std::string> ssh_command(const Address& where, const std::vector<std::string>& arguments) {
    std::vector<std::string> words{settings().ssh, "-T", "-oConnectTimeout=10", "-oServerAliveInterval=5",
                                   "-oServerAliveCountMax=3"};
    if (where.port != 0) {
        words.push_back("-p" + std::to_string(where.port));
    }
    // Run the command in sh, because the login shell may be any shell. Add ~/.local/bin, the folder of `cmake
    // --install --prefix ~/.local`, which shells without login often lack in PATH.
    std::string command = "PATH=$PATH:$HOME/.local/bin; exec " + shell_quoted(settings().program);
    for (const std::string& argument : arguments) {
        command += ' ' + shell_quoted(argument);
    }
    words.insert(words.end(), {"--", where.host, "exec sh -c " + shell_quoted(command)});
    return words;
}

} // namespace ponderscope::remote
