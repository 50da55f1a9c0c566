// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope::remote {

/// Whether the path is on another machine: it begins with ssh://.
bool is_remote(const std::filesystem::path& path);

/// The parts of ssh://[USER@]HOST[:PORT]/PATH. A path that begins with /~/ is below the home folder on the
/// host.
struct Address {
    std::string host; ///< the host's name for ssh, with the user; an IPv6 address has no brackets
    int port = 0;     ///< 0: the port of ssh's configuration
    std::string path; ///< absolute

    [[nodiscard]] std::string machine() const; ///< ssh://HOST, the prefix of all paths on this machine
    [[nodiscard]] std::string url() const { return machine() + path; }
};

/// InputError: no host, or characters that ssh could misread (a leading '-', blanks).
Address parse_address(const std::string& url);

/// Quotes any text as one word of a POSIX shell.
std::string shell_quoted(const std::string& word);

/// Settings of all connections. Set them before the first connection. Environment variables set the defaults.
struct Settings {
    /// The ssh program. Its arguments are options, `--`, the host and a shell command. Default:
    /// PONDERSCOPE_SSH, or "ssh".
    std::string ssh;
    /// The name or path of ponderscope on the other machine. Default: PONDERSCOPE_REMOTE, or "ponderscope".
    std::string program;
    /// A request waits this number of seconds for a lost connection to return. Then it fails.
    double patience = 30;
    /// False: ssh has no terminal to ask for a passphrase (SSH_ASKPASS still works).
    bool terminal = true;
};
Settings& settings();

/// The command line that runs `ponderscope ARGUMENTS` on the machine \p where through ssh.
std::vector<std::string> ssh_command(const Address& where, const std::vector<std::string>& arguments);

} // namespace ponderscope::remote
