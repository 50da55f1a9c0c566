#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the manual pages and the completion for bash from what the verbs' --help-all says.

    command_pages.py PROGRAM FOLDER

FOLDER gets man1/ponderscope.1, man1/ponderscope-VERB.1 and bash-completion/ponderscope.
"""
import pathlib
import re
import subprocess
import sys


def help_of(program, *verb):
    return subprocess.run([program, *verb, "--help-all"], check=True, capture_output=True, text=True).stdout


def parse(text):
    """(what it does, {section: [(entry, words)]}, notes, examples) of one help."""
    head, _, rest = text.partition("\nUsage:")
    sections, section, notes, examples = {}, None, [], []
    for line in rest.split("\n")[1:]:
        if section and section.startswith("Example"):  # the last one: its lines may end in a colon, too
            examples.append(line)
        elif re.match(r"^\S.*:$", line):
            section = line[:-1]
            sections.setdefault(section, [])
            if line.startswith("Example") and line != "Example:":
                examples.append(line)
        elif section and (entry := re.match(r"^  (\S.*?)(?:\s{2,}(\S.*))?$", line)):
            sections[section].append([entry[1], entry[2] or ""])
        elif section and line.startswith("    ") and sections[section]:
            sections[section][-1][1] = (sections[section][-1][1] + " " + line.strip()).strip()
        elif section and line.strip():
            notes.append(line)
    return head.strip(), sections, notes, [line for line in examples if line.strip()]


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.split("\n"))


def page(title, does, synopsis, sections, notes, examples, version, also):
    out = [f'.TH {title.upper()} 1 "" "ponderscope {version}" "User commands"', ".SH NAME",
           f"{roff(title)} \\- {roff(does.splitlines()[0])}", ".SH SYNOPSIS", f".B {roff(synopsis)}"]
    if len(does.splitlines()) > 1:
        out += [".SH DESCRIPTION", roff("\n".join(does.splitlines()[1:]))]
    for name, entries in sections.items():
        if not entries:
            continue
        out.append(f".SH {name.upper()}")
        for entry, words in entries:
            out += [".TP", f".B {roff(entry)}", roff(words)]
    if notes:
        out += [".SH NOTES", roff("\n".join(notes))]
    if examples:
        out += [".SH EXAMPLES", ".nf", *[roff(line) for line in examples], ".fi"]
    return "\n".join([*out, ".SH SEE ALSO", roff(also), ""])


def completion(options):
    cases = "\n".join(f"        {verb}) words='{' '.join(words)}' ;;" for verb, words in options.items() if verb)
    return f"""# Completion of ponderscope for bash; written from its --help.
_ponderscope() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W '{" ".join([*(verb for verb in options if verb), *options[""]])}' -- "$word")
        return
    fi
    [[ $word == -* ]] || return
    case ${{COMP_WORDS[1]}} in
{cases}
        *) return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _ponderscope ponderscope
"""


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    (folder / "man1").mkdir(parents=True, exist_ok=True)
    (folder / "bash-completion").mkdir(exist_ok=True)
    does, sections, notes, examples = parse(help_of(program))
    verbs = [entry for entry, _ in sections["Verbs"]]
    options = {"": re.findall(r"--[\w-]+", " ".join(entry for entry, _ in sections["Options"]))}
    also = ", ".join(f"ponderscope-{verb}(1)" for verb in verbs)
    write = lambda name, text: (folder / "man1" / f"{name}.1").write_text(text, encoding="utf-8")
    write("ponderscope", page("ponderscope", does, "ponderscope VERB [OPTIONS]", sections, notes, examples, version, also))
    for verb in verbs:
        text = help_of(program, verb)
        does, sections, notes, examples = parse(text)
        names = re.findall(r"--[\w-]+", " ".join(entry for entry, _ in sections["Options"]))
        options[verb] = dict.fromkeys(names)  # an option also names those that it needs or excludes
        usage = "ponderscope " + verb + " " + re.search(rf"^Usage: .*? {verb} (.*)$", text, re.MULTILINE)[1]
        write(f"ponderscope-{verb}", page(f"ponderscope-{verb}", does, usage, sections, notes, examples, version,
                                          "ponderscope(1)"))
    (folder / "bash-completion" / "ponderscope").write_text(completion(options), encoding="utf-8")


if __name__ == "__main__":
    main()
