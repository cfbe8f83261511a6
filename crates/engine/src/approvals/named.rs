//! Which words of a command name a file that is run, and what reads it. Whether there is such a file
//! is found out elsewhere: a word too many costs a look, a word too few lets a file be exchanged.

use glovebox_risk::{Command, Language, Word};

/// Nobody nests packages deeper.
const PACKAGES: usize = 16;
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// What makes a program of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The kernel, by its first line; without one, the shell that was to start it.
    Kernel,
    /// An interpreter, whatever the file is called; `None` when nobody here reads its language.
    Interpreter(Option<Language>),
    /// It is an argument: if anything runs it, then as what it says it is.
    Whoever,
}

pub(super) fn named(command: &Command) -> Vec<(String, Reader)> {
    let first = command.words.first().and_then(text).unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    let arguments = command.words.get(1..).unwrap_or_default();
    let mut found = Named::default();
    if first.contains('/') {
        found.add(first, Reader::Kernel);
    }
    if let Some(language) = interpreter(name) {
        found.program(name, language, arguments);
    } else {
        found.options(name, arguments);
    }
    // In a script that stands in a word, any word may be one that a function of it runs.
    if command.through.iter().any(|it| interpreter(it).is_some()) {
        for word in command.words.iter().filter_map(text) {
            found.add(word, Reader::Whoever);
        }
    }
    found.0
}

#[derive(Default)]
struct Named(Vec<(String, Reader)>);

impl Named {
    fn add(&mut self, path: impl Into<String>, reader: Reader) {
        self.0.push((path.into(), reader));
    }

    /// Which word an interpreter runs depends on its options, and not all are known here: so each
    /// word behind one may be the program, up to the first that cannot be an option's value.
    fn program(&mut self, name: &str, language: Option<Language>, arguments: &[Word]) {
        // `deno run FILE`, `bun run FILE`.
        let mut left = match name {
            "deno" | "bun" => 2,
            _ => 1,
        };
        let (mut after_option, mut after_module) = (false, false);
        for word in arguments {
            let word = text(word);
            let is_option = |it: &str| it.len() > 1 && it.starts_with(['-', '+']);
            if let Some(option) = word.filter(|it| left > 0 && is_option(it)) {
                self.add(option, Reader::Whoever);
                after_option = option != "--";
                after_module = false;
                if language == Some(Language::Python) && !option.starts_with("--") {
                    match option.split_once('m') {
                        Some((_, "")) => after_module = true,
                        Some((_, module)) => self.module(module),
                        None => {}
                    }
                }
                continue;
            }
            match word {
                Some(word) if left > 0 => self.file(word, language),
                Some(word) => self.add(word, Reader::Whoever),
                None => {}
            }
            if let Some(module) = word.filter(|_| after_module) {
                self.module(module);
            }
            if !after_option {
                left = usize::saturating_sub(left, 1);
            }
            (after_option, after_module) = (false, false);
        }
    }

    fn file(&mut self, path: &str, language: Option<Language>) {
        self.add(path, Reader::Interpreter(language));
        // Of a directory.
        let inside: &[(&str, Option<Language>)] = match language {
            Some(Language::Python) => &[("__main__.py", language)],
            Some(Language::Javascript) => &[("package.json", None), ("index.js", language)],
            Some(Language::Shell) | None => &[],
        };
        for (file, language) in inside {
            self.add(format!("{path}/{file}"), Reader::Interpreter(*language));
        }
    }

    /// With the packages around it, which are run first.
    fn module(&mut self, module: &str) {
        let reader = Reader::Interpreter(Some(Language::Python));
        let path = module.replace('.', "/");
        self.add(format!("{path}.py"), reader);
        self.add(format!("{path}/__main__.py"), reader);
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]).take(PACKAGES) {
            let package = path.get(..end).unwrap_or_default();
            self.add(format!("{package}/__init__.py"), reader);
        }
    }

    /// Programs that run a file which an option names.
    fn options(&mut self, name: &str, arguments: &[Word]) {
        let (short, long): (&str, &[&str]) = match name {
            "awk" | "gawk" | "mawk" | "nawk" => ("fEi", &["file", "exec", "include"]),
            "sed" | "gsed" => ("f", &["file"]),
            "make" | "gmake" => ("f", &["file", "makefile"]),
            _ => return,
        };
        let mut files = values(arguments, short, long);
        let mut places = vec!["."];
        if matches!(name, "make" | "gmake") {
            files.extend(MAKEFILES);
            places.extend(values(arguments, "C", &["directory"]));
        }
        for place in places {
            for file in &files {
                let path = match file.starts_with('/') {
                    true => (*file).to_owned(),
                    false => format!("{place}/{file}"),
                };
                self.add(path, Reader::Interpreter(None));
            }
        }
    }
}

/// Of these options, attached or in the next word. Long ones may be cut short.
fn values<'w>(arguments: &'w [Word], short: &str, long: &[&str]) -> Vec<&'w str> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let next = || arguments.get(at + 1).and_then(text);
        let Some(option) = text(word).and_then(|it| it.strip_prefix('-')) else {
            continue;
        };
        if let Some(option) = option.strip_prefix('-') {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            let is_one = !name.is_empty() && long.iter().any(|it| it.starts_with(name));
            found.extend(value.or_else(next).filter(|_| is_one));
        } else if let Some((_, value)) = option.split_once(|it| short.contains(it)) {
            found.extend(Some(value).filter(|it| !it.is_empty()).or_else(next));
        }
    }
    found
}

fn text(word: &Word) -> Option<&str> {
    match word {
        Word::Known(text) => Some(text),
        Word::Unknown(_) => None,
    }
}

/// The language of an interpreter, by its name: `Some(None)` for one that nobody here reads.
pub(super) fn interpreter(name: &str) -> Option<Option<Language>> {
    let name = name.rsplit('/').next().unwrap_or(name);
    if name == "." {
        return Some(Some(Language::Shell));
    }
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-');
    Some(match stem {
        "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "rbash" | "hush" | "source" => {
            Some(Language::Shell)
        }
        "python" | "pypy" | "ipython" => Some(Language::Python),
        "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" => Some(Language::Javascript),
        "zsh" | "fish" | "csh" | "tcsh" | "perl" | "ruby" | "php" | "lua" | "luajit" | "tclsh"
        | "wish" | "expect" | "Rscript" | "julia" => None,
        _ => return None,
    })
}
