//! Which files of the workspace a program may execute: what an approval is bound to.

use glovebox_model::Program;

use crate::strict::{Doubt, Step, script_steps, steps};
use crate::tame::{Tame, tame};

/// Which files of the workspace a program may execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// Exactly these, as they are written; none for a program that executes no file. Each is a
    /// shell script that is named to a shell by a literal path, or executed by one with a `/` in it,
    /// relative to where the program starts. The caller reads it and passes its contents to
    /// `runs_script`; what it cannot find there as a file by this very name is `Anything`.
    /// Nothing in the program changes a file while one of these is run.
    Only(Vec<String>),
    /// Anything there. `why` is a short plain phrase for an approver.
    Anything { why: String },
}

impl Runs {
    fn anything(why: &str, source: &str) -> Self {
        let why = match source {
            "" => why.to_owned(),
            source => format!("{why}: `{source}`"),
        };
        Self::Anything { why }
    }

    fn doubted(doubt: &Doubt) -> Self {
        Self::anything(&doubt.why, &doubt.source)
    }
}

/// What a program may execute. The variables of its call are the caller's to check, by
/// `may_change_what_runs`.
pub fn runs(program: &Program) -> Runs {
    match program {
        Program::Python { .. } => Runs::anything("`python3` runs modules that lie beside it", ""),
        Program::Javascript { .. } => Runs::anything("`node` runs modules that lie beside it", ""),
        Program::Argv { .. } | Program::Shell { .. } => match steps(program) {
            Ok(steps) => of_steps(&steps, Writing::BesideNoScript),
            Err(doubt) => Runs::doubted(&doubt),
        },
    }
}

/// The same for the contents of a shell script that a shell runs. A script that changes any file is
/// `Anything`: shells read a script while they run it.
pub fn runs_script(source: &[u8]) -> Runs {
    if !is_for_shells(source) {
        return Runs::anything("the file is no script of `sh` or `bash`", "");
    }
    match script_steps(source) {
        Ok(steps) => of_steps(&steps, Writing::Never),
        Err(doubt) => Runs::doubted(&doubt),
    }
}

/// Whether a program changes nothing and runs nothing but programs that only read: what passes
/// where every change is asked about. The reason why not, otherwise.
pub fn only_reads(program: &Program) -> Result<(), Doubt> {
    let of_kernel = |it: &String| ["/proc", "/sys", "/dev"].iter().any(|at| it.contains(at));
    for step in steps(program)? {
        // It writes `nohup.out` where its output is a terminal.
        let named = step.through.iter().find(|it| *it == "nohup");
        let name = named.map_or(step.name(), String::as_str);
        let reads = step.tame() == Some(Tame::Reads);
        if named.is_some() || step.script.is_some() || !reads {
            let why = format!("`{name}` may do more than read");
            return Err(Doubt::at(&why, &step.source));
        }
        if step.words.iter().any(of_kernel) {
            let why = "it reads what the kernel shows of processes and devices";
            return Err(Doubt::at(why, &step.source));
        }
    }
    Ok(())
}

impl Step {
    fn tame(&self) -> Option<Tame> {
        let arguments = self.words.iter().skip(1).map(|it| Some(it.as_str()));
        tame(self.name(), &arguments.collect::<Vec<_>>())
    }
}

/// The kernel starts what the first line names.
fn is_for_shells(source: &[u8]) -> bool {
    let first = source.split(|it| *it == b'\n').next().unwrap_or_default();
    let Some(line) = first.strip_prefix(b"#!") else {
        return true;
    };
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let words: Vec<&str> = line
        .split([' ', '\t'])
        .filter(|it| !it.is_empty())
        .collect();
    matches!(
        words.as_slice(),
        [
            "/bin/sh"
                | "/usr/bin/sh"
                | "/bin/dash"
                | "/usr/bin/dash"
                | "/bin/bash"
                | "/usr/bin/bash"
        ] | [
            "/bin/sh"
                | "/usr/bin/sh"
                | "/bin/dash"
                | "/usr/bin/dash"
                | "/bin/bash"
                | "/usr/bin/bash",
            "-e" | "-u" | "-x" | "-eu" | "-ex" | "-ux" | "-eux"
        ] | ["/usr/bin/env", "sh" | "dash" | "bash"]
    )
}

/// When a step may change files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    BesideNoScript,
    Never,
}

fn of_steps(steps: &[Step], writing: Writing) -> Runs {
    let mut scripts: Vec<String> = Vec::new();
    let mut writer = None;
    let mut moves = false;
    for step in steps {
        let path = step.script.as_deref();
        if let Some(path) = path.or_else(|| step.name().contains('/').then(|| step.name())) {
            if moves {
                let why = "the directory changes before a script is looked for";
                return Runs::anything(why, &step.source);
            }
            if !is_plain_path(path) {
                let why = "a script is named by a path that may lead anywhere";
                return Runs::anything(why, &step.source);
            }
            if !scripts.iter().any(|it| it == path) {
                scripts.push(path.to_owned());
            }
            continue;
        }
        match step.tame() {
            Some(Tame::Reads | Tame::Quiet) => moves |= step.name() == "cd",
            Some(Tame::Writes) => writer = writer.or(Some(step)),
            None => {
                let why = format!("`{}` may run files that it is not given", step.name());
                return Runs::anything(&why, &step.source);
            }
        }
    }
    match writer {
        Some(step) if writing == Writing::Never || !scripts.is_empty() => {
            let why = format!("`{}` may change a script before it runs", step.name());
            Runs::anything(&why, &step.source)
        }
        _ => Runs::Only(scripts),
    }
}

/// Its text says where it is: relative, or in the workspace, and neither upwards nor through what the
/// kernel makes up.
fn is_plain_path(path: &str) -> bool {
    let inside = !path.starts_with('/') || path.starts_with("/workspace/");
    inside && !path.split('/').any(|it| it == "..")
}
