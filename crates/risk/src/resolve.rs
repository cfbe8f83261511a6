//! From a simple command as it is written to the commands that it really runs.

use crate::builtin::builtin;
use crate::command::{Command, Direction, Files, Position, Redirect, Unclear, Word, usual_name};
use crate::foreign;
use crate::interpreter::{self, Given};
use crate::outline::{Feed, Found, Inline, Origin, Outline, Tongue, excerpt};
use crate::runner;
use crate::shell::{Place, Text, script};
use crate::wrapper::{self, Behind};

#[derive(Debug, Clone)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Text>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) here_string: Option<String>,
    pub(crate) source: String,
    pub(crate) at: Position,
    pub(crate) place: Place,
}

/// Nobody needs more of them around one command, and each looks at all words behind it.
const WRAPPERS: usize = 16;

/// The last part of a path.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a program is named by a path that does not lead to where programs usually lie.
pub(crate) fn is_elsewhere(name: &str) -> bool {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let usual = || usual_name(&format!("/{}", parts.join("/"))).is_some();
    name.contains('/') && !(name.starts_with('/') && usual())
}

/// A program of several words, known, in one place.
fn text(value: &str, like: &Text) -> Text {
    Text {
        word: Word::Known(value.to_owned()),
        ..like.clone()
    }
}

fn unknown(shown: &str, like: &Text) -> Text {
    Text {
        word: Word::Unknown(shown.to_owned()),
        ..like.clone()
    }
}

impl Simple {
    pub(crate) fn blind(&self, why: Unclear, outline: &mut Outline) {
        outline.blind(why, &self.source, self.at, self.place.origin);
    }

    /// A program inside a word.
    fn foreign(&self, hides: bool, outline: &mut Outline) {
        let (source, origin) = (&self.source, self.place.origin);
        outline.darken(Unclear::Interpreter, hides, source, self.at, origin);
    }

    fn name(&self) -> Option<String> {
        let name = self.words.first()?.known()?;
        Some(base(name).to_owned())
    }

    /// A wrapper or a shell of somebody's own may do anything: it counts beside what it would run.
    fn push_own(&self, outline: &mut Outline) {
        let first = self.words.first().and_then(Text::known);
        if first.is_some_and(is_elsewhere) {
            self.push(false, outline);
        }
    }

    fn push(&self, fed_script: bool, outline: &mut Outline) {
        let command = Command {
            words: self.words.iter().map(|it| it.word.clone()).collect(),
            through: self.place.through.clone(),
            redirects: self.redirects.clone(),
            moved: self.place.moved,
            fed: self.place.feed != Feed::Inherited,
            source: excerpt(&self.source),
            at: self.at,
        };
        outline.push(Found {
            command,
            origin: self.place.origin,
            feed: self.place.feed,
            fed_script,
            inline: false,
        });
    }

    /// Reads a script that stands in a word of this command.
    fn nest(&self, word: &Text, outline: &mut Outline) {
        let Some(inner) = word.known() else {
            return self.blind(Unclear::Evaluation, outline);
        };
        let mut place = self.place.clone();
        place.depth += 1;
        place.through.extend(self.name());
        place.bash = match self.name().as_deref() {
            Some("bash" | "rbash") => true,
            // The shell itself reads it again.
            Some("eval" | "trap") => place.bash,
            _ => false,
        };
        match word.argument {
            Some(argument) if place.base.is_none() && place.origin == Origin::Program => {
                place.origin = Origin::Argument(argument);
            }
            _ => place.base = Some(word.at),
        }
        script(inner, place, outline);
    }

    /// The same with other words, behind one more wrapper.
    fn behind(&self, words: Vec<Text>) -> Self {
        let mut next = self.with(words);
        next.place.through.extend(self.name());
        next
    }

    fn with(&self, words: Vec<Text>) -> Self {
        Self {
            words,
            redirects: self.redirects.clone(),
            here_string: self.here_string.clone(),
            source: self.source.clone(),
            at: self.at,
            place: self.place.clone(),
        }
    }

    /// What the command opens itself, once its own words are gone.
    fn keep_redirects(&self, from: usize, outline: &mut Outline) {
        if self.redirects.is_empty() {
            return;
        }
        if let Some(first) = outline.commands.get_mut(from) {
            first
                .command
                .redirects
                .extend(self.redirects.iter().cloned());
            return;
        }
        if let Some(first) = self.words.first() {
            let nothing = self.with(vec![text(":", first)]);
            nothing.push(false, outline);
        }
    }
}

pub(crate) fn resolve(mut simple: Simple, outline: &mut Outline) {
    loop {
        if simple.place.through.len() > WRAPPERS || outline.is_full() {
            return outline.overflow(simple.at, simple.place.origin);
        }
        let Some(name) = simple.name() else {
            simple.blind(Unclear::Name, outline);
            return simple.push(false, outline);
        };
        match unwrap(&simple, &name, outline) {
            Step::Behind(next) => simple = *next,
            Step::Itself => return leaf(&simple, &name, outline),
            Step::Done => return,
        }
    }
}

enum Step {
    /// It runs this.
    Behind(Box<Simple>),
    /// It counts itself.
    Itself,
    Done,
}

fn unwrap(simple: &Simple, name: &str, outline: &mut Outline) -> Step {
    let Some(wrapper) = wrapper::named(name) else {
        return match runner::behind(name, &simple.words) {
            None => Step::Itself,
            Some(ran) => match ran.behind {
                Behind::Command(at) => {
                    simple.push_own(outline);
                    let words = simple.words.get(at..).unwrap_or_default().to_vec();
                    let mut next = simple.with(words);
                    next.place.through.push(ran.spelled);
                    Step::Behind(Box::new(next))
                }
                Behind::Nothing => Step::Itself,
                Behind::Unsure(from) => unsure(simple, from, outline),
            },
        };
    };
    let argument = |at: usize| simple.words.get(at).and_then(Text::known);
    match name {
        // It only asks.
        "command" if matches!(argument(1), Some("-v" | "-V")) => return Step::Itself,
        "env" => {
            if let Some(next) = split_string(simple, outline) {
                return Step::Behind(Box::new(next));
            }
        }
        _ => {}
    }
    let stripped = wrapper.strip(&simple.words);
    if stripped.environment {
        simple.blind(Unclear::Environment, outline);
    }
    let mut at = match stripped.behind {
        Behind::Command(at) => at,
        Behind::Nothing => {
            if matches!(
                name,
                "chroot"
                    | "unshare"
                    | "nsenter"
                    | "su-exec"
                    | "gosu"
                    | "proot"
                    | "run0"
                    | "fakechroot"
            ) {
                simple.blind(Unclear::Evaluation, outline);
            }
            return Step::Itself;
        }
        Behind::Unsure(from) => return unsure(simple, from, outline),
    };
    simple.push_own(outline);
    if name == "flock" && matches!(argument(at), Some("-c" | "--command")) {
        at += 1;
        let from = outline.commands.len();
        match simple.words.get(at) {
            Some(word) => simple.nest(word, outline),
            None => simple.blind(Unclear::Syntax, outline),
        }
        simple.keep_redirects(from, outline);
        return Step::Done;
    }
    let mut words: Vec<Text> = simple.words.get(at..).unwrap_or_default().to_vec();
    let moved = wrapper.moves(simple.words.get(1..at).unwrap_or_default());
    if matches!(name, "xargs" | "gxargs") {
        fill(&simple.words, at, &mut words);
    }
    let mut next = simple.behind(words);
    next.place.moved |= moved;
    Step::Behind(Box::new(next))
}

/// Something behind it is run. It counts as any program with the words from there on, and the
/// likeliest of them is looked at as well.
fn unsure(simple: &Simple, from: usize, outline: &mut Outline) -> Step {
    simple.blind(Unclear::Name, outline);
    simple.push(false, outline);
    let rest = simple.words.get(from..).unwrap_or_default();
    let likely = rest.iter().position(|it| !it.shown().starts_with('-'));
    let Some((likely, first)) = likely.zip(rest.first()) else {
        return Step::Done;
    };
    if first.known().is_some() {
        let mut words = vec![unknown("…", first)];
        words.extend(rest.iter().cloned());
        simple.behind(words).push(false, outline);
    }
    let words = rest.get(likely..).unwrap_or_default().to_vec();
    Step::Behind(Box::new(simple.behind(words)))
}

/// `xargs` puts in what it reads.
fn fill(all: &[Text], at: usize, words: &mut Vec<Text>) {
    let options = all.get(1..at).unwrap_or_default();
    let mut place: Option<String> = None;
    for (index, option) in options.iter().enumerate() {
        let word = option.shown();
        if let Some(given) = word.strip_prefix("-I") {
            let next = options.get(index + 1).map(Text::shown);
            place = Some(
                if given.is_empty() {
                    next.unwrap_or("{}")
                } else {
                    given
                }
                .to_owned(),
            );
        } else if let Some(given) = word.strip_prefix("--replace") {
            place = Some(given.trim_start_matches('=').to_owned());
        } else if let Some(given) = word.strip_prefix("-i") {
            place = Some(given.to_owned());
        }
    }
    match place.map(|it| if it.is_empty() { "{}".to_owned() } else { it }) {
        Some(place) => replace(words, &place),
        None => {
            if let Some(last) = words.last().cloned() {
                words.push(unknown("…", &last));
            }
        }
    }
}

fn replace(words: &mut [Text], place: &str) {
    for word in words {
        if word.known().is_some_and(|it| it.contains(place)) {
            *word = unknown(word.shown(), word);
        }
    }
}

/// `env -S 'A=1 program argument'`.
fn split_string(simple: &Simple, outline: &mut Outline) -> Option<Simple> {
    let mut at = 1;
    let (given, rest) = loop {
        let word = simple.words.get(at)?;
        let known = word.known()?;
        let long = known.strip_prefix("--split-string");
        if let Some(value) = long.and_then(|it| it.strip_prefix('=')) {
            break (text(value, word), at + 1);
        }
        if long == Some("") {
            break (simple.words.get(at + 1)?.clone(), at + 2);
        }
        let letters = known.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        if let Some((before, value)) = letters.split_once('S')
            && !before.contains(['u', 'C', 'a'])
        {
            if value.is_empty() {
                break (simple.words.get(at + 1)?.clone(), at + 2);
            }
            break (text(value, word), at + 1);
        }
        at += if matches!(letters, "u" | "C" | "a") {
            2
        } else {
            1
        };
    };
    let plain = |it: char| it.is_ascii_alphanumeric() || " \t_-+=./,:@%".contains(it);
    let Some(value) = given.known().filter(|it| it.chars().all(plain)) else {
        // Its quoting is not that of a shell.
        simple.blind(Unclear::Name, outline);
        simple.nest(&given, outline);
        return None;
    };
    let mut words = vec![simple.words.first()?.clone()];
    words.extend(value.split_ascii_whitespace().map(|it| text(it, &given)));
    words.extend(simple.words.get(rest..).unwrap_or_default().iter().cloned());
    Some(simple.with(words))
}

/// A command that counts itself.
fn leaf(simple: &Simple, name: &str, outline: &mut Outline) {
    let from = outline.commands.len();
    let arguments = simple.words.get(1..).unwrap_or_default();
    let has = |option: &str| arguments.iter().any(|it| it.shown() == option);
    match name {
        "eval" => {
            simple.blind(Unclear::Evaluation, outline);
            simple.push(false, outline);
            join(simple, arguments, outline);
        }
        "." | "source" => {
            simple.blind(Unclear::Evaluation, outline);
            simple.push(false, outline);
        }
        "trap" => {
            simple.push(false, outline);
            let action = arguments
                .iter()
                .find(|it| !it.shown().starts_with('-') || it.shown() == "-");
            if let Some(action) = action.filter(|it| it.shown() != "-" && !has("-p") && !has("-l"))
            {
                simple.nest(action, outline);
            }
        }
        "watch" => {
            simple.push(false, outline);
            let skip =
                |it: &&Text| it.shown().starts_with('-') || it.shown().parse::<f64>().is_ok();
            let at = arguments.iter().take_while(skip).count();
            join(simple, arguments.get(at..).unwrap_or_default(), outline);
        }
        "parallel" => {
            simple.blind(Unclear::Evaluation, outline);
            simple.push(false, outline);
            let skip =
                |it: &&Text| it.shown().starts_with('-') || it.shown().parse::<u32>().is_ok();
            let at = arguments.iter().take_while(skip).count();
            let given = arguments.get(at..).unwrap_or_default();
            let ends = given.iter().position(|it| it.shown().starts_with(":::"));
            join(
                simple,
                given.get(..ends.unwrap_or(given.len())).unwrap_or_default(),
                outline,
            );
        }
        "ssh" | "rsh" | "mosh" | "at" | "batch" | "capsh" => {
            simple.blind(Unclear::Evaluation, outline);
            simple.push(false, outline);
        }
        "su" | "runuser" | "script" | "sg" | "newgrp" | "nix-shell" => {
            as_another(simple, name, arguments, outline);
        }
        "find" | "gfind" | "fd" | "fdfind" => find(simple, arguments, outline),
        "npm" if matches!(arguments.first().map(Text::shown), Some("exec" | "x")) => {
            let (tongue, code) = (Tongue::Other, None);
            run(simple, Given::Code { tongue, code }, outline);
            let dashes = usize::from(arguments.get(1).map(Text::shown) == Some("--"));
            let mut words = arguments.get(1 + dashes..).unwrap_or_default().to_vec();
            if let Some(option) = words.first().filter(|it| it.shown().starts_with('-')) {
                words.insert(0, unknown("…", option));
            }
            if !words.is_empty() {
                resolve(simple.behind(words), outline);
            }
        }
        _ => {
            if let Some(given) = interpreter::given(name, simple, arguments) {
                return run(simple, given, outline);
            }
            builtin(simple, name, arguments, outline);
            simple.push(false, outline);
        }
    }
    debug_assert!(outline.is_full() || outline.commands.len() > from);
}

/// Words that a shell gets as one script.
fn join(simple: &Simple, words: &[Text], outline: &mut Outline) {
    let Some(first) = words.first() else { return };
    let known: Option<Vec<&str>> = words.iter().map(Text::known).collect();
    match known {
        Some(known) => simple.nest(&text(&known.join(" "), first), outline),
        None => simple.blind(Unclear::Evaluation, outline),
    }
}

fn as_another(simple: &Simple, name: &str, arguments: &[Text], outline: &mut Outline) {
    simple.push(false, outline);
    let mut script = None;
    for (at, argument) in arguments.iter().enumerate() {
        let word = argument.shown();
        if let Some(value) = word.strip_prefix("--command=") {
            script = Some(text(value, argument));
        } else if matches!(word, "--command" | "--run")
            || (!word.starts_with("--") && word.starts_with('-') && word.ends_with('c'))
        {
            script = arguments.get(at + 1).cloned();
        }
        if script.is_some() {
            break;
        }
    }
    // `runuser -u NAME COMMAND`.
    let by_user = matches!(arguments.first().map(Text::shown), Some("-u"));
    match script {
        Some(script) => simple.nest(&script, outline),
        None if name == "runuser" && by_user => {
            let skip = if arguments.get(2).map(Text::shown) == Some("--") {
                3
            } else {
                2
            };
            let words = arguments.get(skip..).unwrap_or_default().to_vec();
            if words.is_empty() {
                simple.blind(Unclear::Evaluation, outline);
            } else {
                resolve(simple.behind(words), outline);
            }
        }
        // A shell that reads standard input.
        None => simple.blind(Unclear::Evaluation, outline),
    }
}

fn find(simple: &Simple, arguments: &[Text], outline: &mut Outline) {
    let mut own = simple.clone();
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        match argument.shown() {
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch" => {
                let rest = arguments.get(at..).unwrap_or_default();
                let ends = rest.iter().position(|it| matches!(it.shown(), ";" | "+"));
                let ends = ends.unwrap_or(rest.len());
                let mut words = rest.get(..ends).unwrap_or_default().to_vec();
                replace(&mut words, "{}");
                if !words.is_empty() {
                    commands.push(words);
                }
                at += ends;
            }
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                if let Some(file) = arguments.get(at) {
                    own.redirects.push(Redirect {
                        direction: Direction::Write,
                        target: file.word.clone(),
                    });
                }
            }
            _ => {}
        }
    }
    own.push(false, outline);
    for words in commands {
        let mut inner = simple.behind(words);
        inner.redirects.clear();
        resolve(inner, outline);
    }
}

/// An interpreter, by what it was given to run.
fn run(simple: &Simple, given: Given, outline: &mut Outline) {
    let from = outline.commands.len();
    match given {
        Given::Script { word, foreign } => {
            if foreign {
                simple.foreign(true, outline);
                simple.push(false, outline);
            } else {
                simple.push_own(outline);
            }
            let from = outline.commands.len();
            simple.nest(&word, outline);
            if word.known().is_none() {
                simple.push(false, outline);
            }
            if !foreign {
                simple.keep_redirects(from, outline);
            }
        }
        Given::Code { tongue, code } => {
            let inside = code.as_ref().and_then(Text::known);
            let hides = inside.is_none_or(|it| foreign::may_start(tongue, it));
            simple.foreign(hides, outline);
            if let Some(code) = inside {
                let found = crate::code::files(tongue, code);
                outline.files.push(Files {
                    names: found.names,
                    others: found.others,
                    source: excerpt(&simple.source),
                });
            }
            simple.push(false, outline);
            if let Some(found) = outline.commands.get_mut(from) {
                found.inline = true;
            }
            let (at, origin) = match code.as_ref().and_then(|it| it.argument) {
                Some(argument) if simple.place.base.is_none() => {
                    (Position { line: 1, column: 1 }, Origin::Argument(argument))
                }
                _ => (
                    code.as_ref().map_or(simple.at, |it| it.at),
                    simple.place.origin,
                ),
            };
            outline.inline.push(Inline {
                tongue,
                code: code.as_ref().and_then(Text::known).map(str::to_owned),
                at,
                origin,
            });
        }
        Given::Input => {
            simple.blind(Unclear::Evaluation, outline);
            simple.push(true, outline);
            if let (true, Some(here), Some(first)) = (
                simple.name().is_some_and(|it| interpreter::is_shell(&it)),
                simple.here_string.as_deref(),
                simple.words.first(),
            ) {
                let here = Text {
                    argument: None,
                    ..text(here, first)
                };
                simple.nest(&here, outline);
            }
        }
        Given::Unsure => {
            simple.blind(Unclear::Evaluation, outline);
            simple.push(false, outline);
        }
    }
}
