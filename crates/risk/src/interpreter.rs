//! Programs that run programs: which were given one, and where it stands.

use crate::carrier;
use crate::outline::{Feed, Tongue};
use crate::resolve::{Simple, base};
use crate::shell::Text;

#[derive(Debug)]
pub(crate) enum Given {
    /// A shell script in a word. Foreign: of a shell with another grammar.
    Script {
        word: Text,
        foreign: bool,
    },
    Code {
        tongue: Tongue,
        code: Option<Text>,
    },
    /// From standard input.
    Input,
    /// Nobody knows.
    Unsure,
}

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "rbash", "hush"];
const FOREIGN: [&str; 9] = [
    "zsh",
    "fish",
    "csh",
    "tcsh",
    "pwsh",
    "powershell",
    "rc",
    "nu",
    "xonsh",
];

pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name) || FOREIGN.contains(&name)
}

struct Interpreter {
    name: &'static str,
    tongue: Tongue,
    /// Short options with code, and long ones.
    code: &'static str,
    long_code: &'static [&'static str],
    /// Short options whose rest, or next word, is their value.
    values: &'static str,
    attached: &'static str,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        name: "python",
        tongue: Tongue::Python,
        code: "c",
        long_code: &[],
        values: "WXm",
        attached: "",
    },
    Interpreter {
        name: "pypy",
        tongue: Tongue::Python,
        code: "c",
        long_code: &[],
        values: "WXm",
        attached: "",
    },
    Interpreter {
        name: "ipython",
        tongue: Tongue::Python,
        code: "c",
        long_code: &[],
        values: "m",
        attached: "",
    },
    Interpreter {
        name: "node",
        tongue: Tongue::Javascript,
        code: "ep",
        long_code: &["eval", "print"],
        values: "rC",
        attached: "",
    },
    Interpreter {
        name: "nodejs",
        tongue: Tongue::Javascript,
        code: "ep",
        long_code: &["eval", "print"],
        values: "rC",
        attached: "",
    },
    Interpreter {
        name: "bun",
        tongue: Tongue::Javascript,
        code: "ep",
        long_code: &["eval", "print"],
        values: "r",
        attached: "",
    },
    Interpreter {
        name: "tsx",
        tongue: Tongue::Javascript,
        code: "ep",
        long_code: &["eval", "print"],
        values: "r",
        attached: "",
    },
    Interpreter {
        name: "ts-node",
        tongue: Tongue::Javascript,
        code: "ep",
        long_code: &["eval", "print"],
        values: "rP",
        attached: "",
    },
    Interpreter {
        name: "perl",
        tongue: Tongue::Other,
        code: "eE",
        long_code: &[],
        values: "",
        attached: "IMmFxiCDdV0l",
    },
    Interpreter {
        name: "ruby",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "IrCEF",
        attached: "i0KTWx",
    },
    Interpreter {
        name: "php",
        tongue: Tongue::Other,
        code: "rBRE",
        long_code: &["run"],
        values: "dcfFzS",
        attached: "",
    },
    Interpreter {
        name: "lua",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "l",
        attached: "",
    },
    Interpreter {
        name: "luajit",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "lj",
        attached: "",
    },
    Interpreter {
        name: "julia",
        tongue: Tongue::Other,
        code: "eE",
        long_code: &["eval", "print"],
        values: "LpJt",
        attached: "",
    },
    Interpreter {
        name: "tclsh",
        tongue: Tongue::Other,
        code: "",
        long_code: &[],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "wish",
        tongue: Tongue::Other,
        code: "",
        long_code: &[],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "expect",
        tongue: Tongue::Other,
        code: "c",
        long_code: &[],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "Rscript",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "elixir",
        tongue: Tongue::Other,
        code: "e",
        long_code: &["eval"],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "guile",
        tongue: Tongue::Other,
        code: "c",
        long_code: &[],
        values: "Ll",
        attached: "",
    },
    Interpreter {
        name: "groovy",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "scala",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "",
        attached: "",
    },
    Interpreter {
        name: "osascript",
        tongue: Tongue::Other,
        code: "e",
        long_code: &[],
        values: "l",
        attached: "",
    },
    Interpreter {
        name: "gdb",
        tongue: Tongue::Other,
        code: "",
        long_code: &["ex", "eval-command", "iex", "x"],
        values: "",
        attached: "",
    },
];

/// None: it runs nothing that it was given.
pub(crate) fn given(name: &str, simple: &Simple, arguments: &[Text]) -> Option<Given> {
    if is_shell(name) {
        return shell(arguments, FOREIGN.contains(&name));
    }
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-');
    if let Some(interpreter) = INTERPRETERS
        .iter()
        .find(|it| it.name == name || it.name == stem)
    {
        return interpreter.given(arguments);
    }
    // An editor or a client that reads its commands.
    let reads = ["ed", "ex", "bc", "m4", "psql", "mysql", "sqlite3"];
    if reads.contains(&name) && simple.place.feed != Feed::Inherited {
        return Some(Given::Unsure);
    }
    carrier::carries(name, arguments).then_some(Given::Code {
        tongue: Tongue::Other,
        code: None,
    })
}

/// Long options of bash that change what is run, or take a value.
const LONG: [&str; 11] = [
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "init-file",
    "noediting",
    "pretty-print",
    "protected",
    "rcfile",
    "restricted",
    "verbose",
];
/// Names behind `-o` that leave a script the same.
const PLAIN: [&str; 8] = [
    "allexport",
    "errexit",
    "monitor",
    "noglob",
    "nounset",
    "pipefail",
    "verbose",
    "xtrace",
];

fn shell(arguments: &[Text], foreign: bool) -> Option<Given> {
    let mut at = 0;
    let mut script = false;
    let mut input = false;
    while let Some(argument) = arguments.get(at) {
        let Some(word) = argument.known() else {
            return Some(Given::Unsure);
        };
        if word == "--" || word == "-" {
            at += 1;
            break;
        }
        // bash takes its long options behind one dash too.
        let long = word.strip_prefix('-').unwrap_or_default();
        let long = long.strip_prefix('-').unwrap_or(long);
        match long {
            "login" | "norc" | "noprofile" | "posix" => {}
            "version" | "help" => return None,
            "command" => script = true,
            _ if word.starts_with("--") || LONG.contains(&long) => return Some(Given::Unsure),
            _ => {
                let Some(letters) = word.strip_prefix(['-', '+']) else {
                    break;
                };
                for letter in letters.chars() {
                    match letter {
                        'c' if word.starts_with('-') => script = true,
                        's' => input = true,
                        'o' => {
                            at += 1;
                            let name = arguments.get(at).and_then(Text::known);
                            if !name.is_some_and(|it| PLAIN.contains(&it)) {
                                return Some(Given::Unsure);
                            }
                        }
                        letter if "aefhlmnuvxC".contains(letter) => {}
                        _ => return Some(Given::Unsure),
                    }
                }
            }
        }
        at += 1;
    }
    let operand = arguments.get(at);
    if script && input {
        // Some shells run what they read behind the script.
        return Some(Given::Unsure);
    }
    if script {
        let word = operand.cloned();
        return word.map(|word| Given::Script { word, foreign });
    }
    match operand.filter(|_| !input) {
        None => Some(Given::Input),
        Some(file) => file_of(file),
    }
}

/// A script by name is not read here, but it can be named; anything else cannot.
fn file_of(file: &Text) -> Option<Given> {
    match file.known() {
        None => Some(Given::Unsure),
        Some(path) if path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/") => {
            Some(Given::Input)
        }
        Some(_) => None,
    }
}

impl Interpreter {
    fn given(&self, arguments: &[Text]) -> Option<Given> {
        let code = |code: Option<Text>| {
            Some(Given::Code {
                tongue: self.tongue,
                code,
            })
        };
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let Some(word) = argument.known() else {
                return Some(Given::Unsure);
            };
            at += 1;
            if word == "--" {
                break;
            }
            if word == "-" {
                return Some(Given::Input);
            }
            let Some(letters) = word.strip_prefix('-') else {
                return file_of(argument);
            };
            let long = letters.trim_start_matches('-');
            let name = long.split('=').next().unwrap_or(long);
            if self.long_code.contains(&name) {
                let value = long.split_once('=').map(|(_, value)| value);
                let given = match value {
                    Some(value) => Some(Text {
                        word: crate::command::Word::Known(value.to_owned()),
                        ..argument.clone()
                    }),
                    None => arguments.get(at).cloned(),
                };
                return code(given);
            }
            if letters.starts_with('-') {
                if matches!(long, "version" | "help") {
                    return None;
                }
                // Code may come in by modules to be loaded first.
                if matches!(
                    name,
                    "import" | "loader" | "experimental-loader" | "require" | "init-file"
                ) {
                    return Some(Given::Unsure);
                }
                continue;
            }
            if matches!(letters, "V" | "v" | "h") {
                return None;
            }
            for (index, letter) in letters.char_indices() {
                let rest = letters.get(index + letter.len_utf8()..).unwrap_or_default();
                if self.code.contains(letter) {
                    // `-pe CODE`: both letters carry the same code.
                    let more = rest.chars().all(|it| self.code.contains(it));
                    let given = if more {
                        arguments.get(at).cloned()
                    } else {
                        Some(Text {
                            word: crate::command::Word::Known(rest.to_owned()),
                            ..argument.clone()
                        })
                    };
                    return code(given);
                }
                if self.attached.contains(letter) {
                    if rest.contains(|it| self.code.contains(it)) {
                        return code(None);
                    }
                    break;
                }
                if self.values.contains(letter) {
                    if letter == 'm' && self.tongue == Tongue::Python {
                        return None;
                    }
                    at += usize::from(rest.is_empty());
                    break;
                }
            }
        }
        match arguments.get(at) {
            None => Some(Given::Input),
            Some(file) => file_of(file),
        }
    }
}

/// Whether a name is one of the interpreters whose script files could be read.
pub(crate) fn language_of(name: &str) -> Option<Tongue> {
    let name = base(name);
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-');
    let found = INTERPRETERS
        .iter()
        .find(|it| it.name == name || it.name == stem);
    found.map(|it| it.tongue)
}
