//! What rules look at, gathered once for a request.

use glovebox_model::{
    BackendName, ByteString, Call, Correlation, HostPattern, Lifetime, NetworkMode, Placement,
    Program, RiskSignal, SpaceId, Tier, WorkspaceRef,
};
use glovebox_risk::{Command, Reading, Step, Unclear, Word};

use super::command::program;
use super::inner::{Scripts, unnamed, unread};
use super::mention::Mentions;
use super::path::{PathFact, clean};
use crate::assess::Assessed;

/// Where programs start unless a call says otherwise.
pub(crate) const WORK: &str = "/workspace/work";
/// No path is longer; a word that is counts as not known.
pub(crate) const WORD_BYTES_MAX: usize = 4096;
/// Commands after which a relative path means another one.
pub(crate) const MOVES: [&str; 3] = ["cd", "pushd", "popd"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Known(String),
    Unknown,
}

/// One simple command as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) program: Value,
    pub(crate) args: Vec<Value>,
    pub(crate) through: Vec<String>,
    /// The shell opens a file for it.
    pub(crate) touches_files: bool,
    pub(crate) source: String,
    pub(crate) at: (u32, u32),
}

impl Segment {
    /// The words as rules see them; what is not known is `?`.
    pub(crate) fn words(&self) -> String {
        let text = |it: &Value| match it {
            Value::Known(text) => text.clone(),
            Value::Unknown => "?".to_owned(),
        };
        let words: Vec<_> = std::iter::once(&self.program)
            .chain(&self.args)
            .map(text)
            .collect();
        words.join(" ")
    }
}

/// Why no allow rule can cover the program by its commands or paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Veil {
    pub(crate) why: String,
    pub(crate) source: String,
}

impl Veil {
    fn new(why: &str, source: &str) -> Self {
        Self {
            why: why.to_owned(),
            source: source.to_owned(),
        }
    }

    fn of_workspace(segment: &Segment) -> Self {
        Self::new(
            "it runs what a file of the workspace says that it does not name",
            &segment.source,
        )
    }

    fn of_script(segment: &Segment) -> Self {
        Self::new(
            "it runs a script that was not read, or that it may change first",
            &segment.source,
        )
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) ids: Correlation,
    pub(crate) tool: String,
    pub(crate) language: &'static str,
    pub(crate) tier: Tier,
    pub(crate) signals: Vec<RiskSignal>,
    /// None while it is not chosen.
    pub(crate) backend: Option<BackendName>,
    pub(crate) network: NetworkMode,
    pub(crate) segments: Vec<Segment>,
    /// Those that run for certain, with no shell and no plain wrapper around them: all that rules which
    /// allow look at. Empty behind a veil.
    pub(crate) told: Vec<Segment>,
    /// It changes nothing, for certain; why that cannot be said, otherwise.
    pub(crate) reads: Result<(), Veil>,
    /// Those of the scripts that it runs: only for rules that deny or ask.
    pub(crate) inner: Vec<Segment>,
    pub(crate) veil: Option<Veil>,
    /// Commands may be in it that were not found.
    pub(crate) hidden: Option<Veil>,
    /// Files may be opened in it that were not found.
    pub(crate) unnamed_files: Option<Veil>,
    pub(crate) paths: Vec<PathFact>,
    /// What may be a path as well, and what stands for all below it: only for rules that deny or ask.
    pub(crate) perhaps: Vec<PathFact>,
    pub(crate) trees: Vec<PathFact>,
    pub(crate) hosts: Vec<HostPattern>,
    /// Any destination may be reached.
    pub(crate) any_host: bool,
    pub(crate) secrets: Vec<String>,
    pub(crate) env: Vec<String>,
    pub(crate) workspace: String,
    pub(crate) lifetime: &'static str,
    pub(crate) writes: &'static str,
}

/// What the caller of `decide` knows beside the assessed call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    pub(crate) tool: &'a str,
    pub(crate) backend: Option<BackendName>,
    /// None: nobody looks into scripts here.
    pub(crate) scripts: Option<Scripts<'a>>,
}

impl Facts {
    pub(crate) fn of(assessed: &Assessed, reading: &Reading, beside: Beside<'_>) -> Self {
        let call = assessed.call();
        let profile = assessed.profile();
        let cwd = match &call.cwd {
            Some(cwd) => clean(&String::from_utf8_lossy(cwd.as_bytes()), WORK),
            None => WORK.to_owned(),
        };
        let segments: Vec<_> = reading
            .commands
            .iter()
            .map(|it| segment(it, &cwd))
            .collect();
        let (told, doubt) = told(&call.program, &cwd);
        let doubt = used_home(call).or(doubt);
        let env: Vec<_> = assessed.env().iter().map(|it| it.key.to_string()).collect();
        let changed = assessed.changed_names();
        let mut mentions = Mentions::of(&reading.commands, &segments, &cwd);
        let scripts = beside.scripts.map_or(&[][..], |it| it.readings);
        let within = scripts.iter().flat_map(|it| &it.commands);
        let within: Vec<Command> = within.cloned().collect();
        let inner: Vec<_> = within.iter().map(|it| segment(it, &cwd)).collect();
        if !inner.is_empty() {
            // The program may have changed its directory before it runs them.
            let all: Vec<_> = segments.iter().chain(&inner).cloned().collect();
            let found = Mentions::of(&within, &all, &cwd);
            mentions.perhaps.extend(found.paths);
            mentions.perhaps.extend(found.perhaps);
            mentions.trees.extend(found.trees);
        }
        let mut unnamed_files = None;
        for files in std::iter::once(reading)
            .chain(scripts)
            .flat_map(|it| &it.files)
        {
            if !mentions.name(files, &segments, &cwd) || files.others {
                let why = "its code opens files by names that are not written in it";
                unnamed_files.get_or_insert_with(|| Veil::new(why, &files.source));
            }
        }
        let hidden = hidden(reading, &changed)
            .or_else(|| scripts.iter().find_map(|it| hidden(it, &[])))
            .or_else(|| unread(&segments, &inner, beside.scripts?).map(Veil::of_script))
            .or_else(|| {
                unnamed(&segments)
                    .or_else(|| unnamed(&inner))
                    .map(Veil::of_workspace)
            });
        mentions.hosts.extend(
            profile
                .allow_net
                .iter()
                .filter_map(|it| HostPattern::of_destination(&it.to_string()).ok()),
        );
        Self {
            ids: call.ids.clone(),
            tool: beside.tool.to_owned(),
            language: language(&call.program),
            tier: assessed.risk().tier,
            signals: assessed.risk().signals.clone(),
            backend: profile.backend.or(beside.backend),
            network: profile.network,
            veil: veil(reading, &segments, &changed).or(doubt),
            hidden,
            unnamed_files,
            segments,
            told,
            reads: match used_home(call) {
                Some(veil) => Err(veil),
                None => reads(&call.program, &assessed.uncertain_names()),
            },
            inner,
            paths: mentions.paths.into_iter().collect(),
            perhaps: mentions.perhaps.into_iter().collect(),
            trees: mentions.trees.into_iter().collect(),
            hosts: mentions.hosts.into_iter().collect(),
            any_host: profile.network == NetworkMode::Unrestricted,
            secrets: call.secrets.iter().map(|it| it.name.to_string()).collect(),
            env,
            workspace: workspace(&call.workspace),
            lifetime: lifetime(&call.placement),
            writes: call.writes.as_str(),
        }
    }

    /// Of a script alone, for the examples of a rule.
    pub(crate) fn of_script(script: &str) -> Self {
        let script = ByteString::try_from(script).unwrap_or_default();
        let program = Program::Shell { script };
        let reading = glovebox_risk::read(&program);
        let (told, doubt) = told(&program, WORK);
        let segments: Vec<_> = reading
            .commands
            .iter()
            .map(|it| segment(it, WORK))
            .collect();
        Self {
            language: "shell",
            veil: veil(&reading, &segments, &[]).or(doubt),
            told,
            hidden: hidden(&reading, &[]).or_else(|| unnamed(&segments).map(Veil::of_workspace)),
            segments,
            ..Self::of_action(&Correlation::of_space(SpaceId::local()), "", &[])
        }
    }

    /// With something in every list, for trying an expression.
    pub(crate) fn sample() -> Self {
        let word = || vec!["x".to_owned()];
        let host = HostPattern::of_destination("x:1").into_iter();
        Self {
            segments: vec![Segment {
                program: Value::Known("x".to_owned()),
                args: Vec::new(),
                through: Vec::new(),
                touches_files: false,
                source: "x".to_owned(),
                at: (1, 1),
            }],
            signals: vec![RiskSignal {
                name: "x".to_owned(),
                tier: Tier::Safe,
                at: None,
            }],
            hosts: host.collect(),
            secrets: word(),
            env: word(),
            ..Self::of_action(&Correlation::of_space(SpaceId::local()), "x", &word())
        }
    }

    /// Of a tool that runs no program, such as one that reads a file.
    pub(crate) fn of_action(ids: &Correlation, tool: &str, paths: &[String]) -> Self {
        let path = |it: &String| PathFact::Known(clean(it, WORK));
        Self {
            ids: ids.clone(),
            tool: tool.to_owned(),
            language: "none",
            tier: Tier::Safe,
            signals: Vec::new(),
            backend: None,
            network: NetworkMode::None,
            segments: Vec::new(),
            told: Vec::new(),
            reads: Ok(()),
            inner: Vec::new(),
            veil: None,
            hidden: None,
            unnamed_files: None,
            paths: paths.iter().map(path).collect(),
            perhaps: Vec::new(),
            trees: Vec::new(),
            hosts: Vec::new(),
            any_host: false,
            secrets: Vec::new(),
            env: Vec::new(),
            workspace: String::new(),
            lifetime: "none",
            writes: "none",
        }
    }

    pub(crate) fn hosts_text(&self) -> Vec<String> {
        let any = self.any_host.then(|| "*".to_owned());
        let listed = self.hosts.iter().map(|it| it.text().to_owned());
        listed.chain(any).collect()
    }

    /// The segment in which a signal lies, by its place.
    pub(crate) fn segment_at(&self, at: &str) -> Option<&Segment> {
        let mut numbers = at.split(|it: char| !it.is_ascii_digit());
        let line: u32 = numbers.next()?.parse().ok()?;
        let column: u32 = numbers.next()?.parse().ok()?;
        self.segments
            .iter()
            .filter(|it| it.at <= (line, column))
            .max_by_key(|it| it.at)
    }
}

fn segment(command: &Command, cwd: &str) -> Segment {
    let value = |word: &Word| match word {
        Word::Known(text) if text.len() <= WORD_BYTES_MAX => Value::Known(text.clone()),
        Word::Known(_) | Word::Unknown(_) => Value::Unknown,
    };
    let first = match command.words.first().map(value) {
        Some(Value::Known(name)) => Value::Known(program(&name, cwd)),
        Some(Value::Unknown) | None => Value::Unknown,
    };
    Segment {
        program: first,
        args: command.words.iter().skip(1).map(value).collect(),
        through: command.through.clone(),
        touches_files: !command.redirects.iter().all(|it| it.is_harmless()),
        source: command.source.clone(),
        at: (command.at.line, command.at.column),
    }
}

/// A login shell runs what earlier execs left in the home of a sandbox that is kept.
fn used_home(call: &Call) -> Option<Veil> {
    (call.placement != Placement::Fresh && call.program.starts_shell()).then(|| {
        let why = "a shell may run what earlier execs left in the home of this sandbox";
        let argv = call.program.argv();
        Veil::new(
            why,
            &argv.first().map(ByteString::display).unwrap_or_default(),
        )
    })
}

fn told(program: &Program, cwd: &str) -> (Vec<Segment>, Option<Veil>) {
    match glovebox_risk::steps(program) {
        Ok(steps) => (steps.iter().map(|it| of_step(it, cwd)).collect(), None),
        Err(doubt) => (Vec::new(), Some(Veil::new(&doubt.why, &doubt.source))),
    }
}

fn of_step(step: &Step, cwd: &str) -> Segment {
    let mut words = step.words.iter();
    let known = |it: &String| match it.len() <= WORD_BYTES_MAX {
        true => Value::Known(it.clone()),
        false => Value::Unknown,
    };
    let first = words.next().map(|it| Value::Known(program(it, cwd)));
    Segment {
        program: first.unwrap_or(Value::Unknown),
        args: words.map(known).collect(),
        through: step.through.clone(),
        touches_files: false,
        source: step.source.clone(),
        at: (1, 1),
    }
}

fn reads(program: &Program, uncertain: &[String]) -> Result<(), Veil> {
    if let Some(name) = uncertain.first() {
        return Err(Veil::new(
            "a variable of the call may change what is run",
            name,
        ));
    }
    let reads = glovebox_risk::only_reads(program);
    reads.map_err(|it| Veil::new(&it.why, &it.source))
}

const CHANGED: &str = "a variable of the call changes what a name means";

fn veil(reading: &Reading, segments: &[Segment], changed: &[String]) -> Option<Veil> {
    if let Some(blind) = reading.blind.first() {
        return Some(Veil::new(said(blind.why), &blind.source));
    }
    let veiled = |why, source: &str| Some(Veil::new(why, source));
    // A call's own variables change what a name means as well as a script's.
    if let Some(key) = changed.first() {
        return veiled(CHANGED, key);
    }
    if let Some(it) = segments.iter().find(|it| it.touches_files) {
        return veiled("the shell opens a file", &it.source);
    }
    let unknown = |it: &&Segment| it.args.contains(&Value::Unknown) || it.program == Value::Unknown;
    if let Some(it) = segments.iter().find(unknown) {
        return veiled("only the shell knows the value of a word", &it.source);
    }
    let moves =
        |it: &&Segment| matches!(&it.program, Value::Known(name) if MOVES.contains(&name.as_str()));
    match segments.iter().find(moves) {
        Some(it) if segments.len() > 1 => veiled("the directory changes on the way", &it.source),
        Some(_) | None => None,
    }
}

fn hidden(reading: &Reading, changed: &[String]) -> Option<Veil> {
    if let Some(blind) = reading.blind.iter().find(|it| it.hides) {
        return Some(Veil::new(said(blind.why), &blind.source));
    }
    changed.first().map(|key| Veil::new(CHANGED, key))
}

fn said(why: Unclear) -> &'static str {
    match why {
        Unclear::Syntax => "it cannot be read",
        Unclear::Substitution => "a command's output becomes part of it",
        Unclear::Evaluation => "it evaluates what is not written in it",
        Unclear::Name => "the name of a program is not known",
        Unclear::Interpreter => "it holds a program in another language",
        Unclear::Definition => "it gives names a new meaning",
        Unclear::Environment => "it changes a variable that changes what a name means",
        Unclear::TooLarge => "it is too large to be read",
        Unclear::Dialect => "shells read it differently",
        // A later kind of blindness is blindness.
        #[allow(unreachable_patterns)]
        _ => "a part of it cannot be told in advance",
    }
}

pub(crate) fn language(program: &Program) -> &'static str {
    match program {
        Program::Argv { .. } => "argv",
        Program::Shell { .. } => "shell",
        Program::Python { .. } => "python",
        Program::Javascript { .. } => "javascript",
    }
}

/// A directory of the caller's own is `adopted`: rules do not see host paths.
pub(crate) fn workspace(workspace: &WorkspaceRef) -> String {
    match workspace {
        WorkspaceRef::Adopted(_) => "adopted".to_owned(),
        WorkspaceRef::Project(id) => id.to_string(),
        WorkspaceRef::Scratch => "scratch".to_owned(),
    }
}

fn lifetime(placement: &Placement) -> &'static str {
    match placement {
        Placement::Fresh => Lifetime::Exec.as_str(),
        Placement::Scope(lifetime) => lifetime.as_str(),
        Placement::Named(_) => "named",
    }
}
