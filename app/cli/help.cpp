// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"
#include "core/base/words.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope::cli {

namespace {

constexpr std::size_t width = 80;
constexpr std::size_t most_options = 12; ///< a verb with at most this many options shows all

/// The most used options of verbs that have many.
const std::map<std::string_view, std::vector<std::string_view>> common_options{
    {"record",
     {"text", "jsonl", "prompt", "output", "name", "policy", "record", "device", "dtype", "resume"}},
    {"generate",
     {"prompt", "from", "at", "force", "tokens", "output", "policy", "temperature", "seed", "device", "dtype",
      "json"}},
    {"score", {"output", "name", "policy", "record", "context", "bos", "device", "dtype"}},
    {"logits", {"ids", "output", "method", "policy", "device", "dtype", "jacobi"}},
    {"compare", {"seeds", "replicates", "level", "json"}},
    {"policy", {"policy", "sweep", "rerun", "output", "csv", "replicates", "level", "json"}},
    {"referee", {"policy", "steps", "against", "rerun", "output", "tex", "csv", "replicates", "json"}},
    {"stats", {"against", "by", "types-of", "csv", "replicates", "level", "json"}},
    {"page", {"output", "run", "title", "sequence", "max-tokens"}},
    {"tokenize", {"text", "prompt", "decode", "spans", "bos", "json"}}};

/// Words of \p text in lines of at most `width` columns. Every line except the first has \p indent blanks.
std::string wrapped(std::string_view text, std::size_t column, std::size_t indent) {
    std::string out;
    std::size_t at = column;
    for (const std::string_view word : split_at(text, ' ')) {
        if (at > indent && at + 1 + word.size() > width) {
            out += "\n" + std::string(indent, ' ');
            at = indent;
        } else if (at > indent) {
            out += ' ';
            ++at;
        }
        out += word;
        at += word.size();
    }
    return out;
}

/// An entry with its meaning beside it or, if there is no room, below it.
std::string entry(const std::string& name, std::string_view meaning, std::size_t column) {
    std::string out = "  " + name;
    if (out.size() + 2 > column) {
        out += "\n" + std::string(column, ' ');
    } else {
        out.resize(column, ' ');
    }
    return out + wrapped(meaning, column, column) + "\n";
}

/// The first clause of a description.
std::string_view first_clause(std::string_view text) {
    for (const std::string_view end : {": ", "; ", " (", ". "}) {
        text = text.substr(0, text.find(end));
    }
    return text;
}

class Help : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode mode) const override {
        const bool all = mode != CLI::AppFormatMode::Normal;
        const bool is_verb = app->get_parent() != nullptr;
        std::string out = description(app->get_description());
        out += is_verb ? make_usage(app, "ponderscope " + app->get_name())
                       : "Usage: ponderscope VERB [OPTIONS]\n";
        const std::vector<const CLI::Option*> positionals =
            app->get_options([](const CLI::Option* option) { return option->get_positional(); });
        const std::vector<const CLI::Option*> options = app->get_options([&](const CLI::Option* option) {
            return option->nonpositional() && (all || is_common(*app, *option));
        });
        const std::size_t column = all ? 30 : 26;
        if (!positionals.empty()) {
            out += "\nPositionals:\n";
            for (const CLI::Option* option : positionals) {
                out += entry(option->get_name(true), meaning(*option, all), column);
            }
        }
        out += "\nOptions:\n";
        for (const CLI::Option* option : options) {
            const std::string form = all ? make_option_opts(option) : short_form(*option);
            out += entry(option->get_name(false, true) + form, meaning(*option, all), column);
        }
        if (!is_verb) {
            out += "\nVerbs:\n";
            for (const CLI::App* verb : app->get_subcommands([](const CLI::App*) { return true; })) {
                out += entry(verb->get_name(), verb->get_description(), 12);
            }
        }
        out += "\n" + (all || !is_verb ? app->get_footer() : example_of(app->get_footer())) + "\n";
        if (!all && is_verb && options.size() < count_options(*app)) {
            out += "\nAll " + std::to_string(count_options(*app)) + " options: ponderscope " +
                   app->get_name() + " --help-all\n";
        }
        return out;
    }

private:
    static std::size_t count_options(const CLI::App& app) {
        return app.get_options([](const CLI::Option* option) { return option->nonpositional(); }).size();
    }

    static bool is_common(const CLI::App& app, const CLI::Option& option) {
        const auto common = common_options.find(app.get_name());
        if (common == common_options.end() || count_options(app) <= most_options) {
            return true;
        }
        const auto& names = common->second;
        return std::any_of(
            option.get_lnames().begin(), option.get_lnames().end(),
            [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); });
    }

    static std::string_view meaning(const CLI::Option& option, bool all) {
        return all ? std::string_view(option.get_description()) : first_clause(option.get_description());
    }

    /// The name of the option's value, without its allowed range.
    static std::string short_form(const CLI::Option& option) {
        const std::string type = option.get_type_name();
        return type.empty() ? "" : " " + type.substr(0, type.find_first_of(":[", 1));
    }

    static std::string description(const std::string& text) {
        std::string out;
        for (const std::string_view line : split_at(text, '\n')) {
            out += wrapped(line, 0, 0) + "\n";
        }
        return out;
    }

    /// The first command of a footer's examples.
    static std::string example_of(const std::string& footer) {
        const std::size_t begin = footer.find("Example:");
        if (begin == std::string::npos) {
            return footer;
        }
        std::size_t end = footer.find('\n', begin);
        do {
            end = footer.find('\n', std::min(end, footer.size() - 1) + 1);
        } while (end != std::string::npos && footer[end - 1] == '\\');
        return continued(footer.substr(begin, end == std::string::npos ? end : end - begin));
    }

    /// A command in lines of at most `width` columns, with the shell's backslash between them.
    static std::string continued(std::string text) {
        std::size_t begin = text.find('\n') + 1;
        while (text.size() - begin > width) {
            const std::size_t blank = text.rfind(' ', begin + width - 2);
            text.replace(blank, 1, " \\\n    ");
            begin = blank + 3;
        }
        return text;
    }
};

} // namespace

void format_help(CLI::App& program) {
    const auto help = std::make_shared<Help>();
    program.formatter(help);
    for (CLI::App* verb : program.get_subcommands({})) {
        verb->formatter(help);
    }
}

} // namespace ponderscope::cli
