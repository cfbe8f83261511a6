//! `glovebox mcp install`: a host's own file, edited as its owner would.

mod edit;
mod entry;
mod file;
mod host;
mod jsonc;
mod program;
mod shown;
mod tables;
#[cfg(test)]
mod tests;

use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use serde_json::{Value, json};

use crate::args::{Global, McpInstallArgs};
use crate::context::home;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::prompt::Prompt;
use crate::render;
use crate::stdout;
use edit::{Edit, Unfit};
use entry::{Entry, Form};
use file::HostFile;
use host::{Host, Location, Scope, Surroundings};

pub(super) fn run(global: &Global, args: &McpInstallArgs) -> Result<Exit> {
    entry::check_name(&args.name)?;
    let here = std::env::current_dir().map_err(|error| {
        let message = "cannot tell which directory this is";
        Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
    })?;
    let around = Surroundings {
        home: home(),
        here: &here,
        variable: &|name| std::env::var_os(name),
    };
    let scope = match args.project_file {
        true => Scope::Project,
        false => Scope::Own,
    };
    let location = args.host.location(scope, &around)?;
    let entry = Entry {
        name: args.name.clone(),
        form: program::form(global, args, scope, &here)?,
    };
    let plan = Plan::make(args.host, location, entry)?;
    match &plan.edit {
        Edit::Same => plan.tell_same(global),
        Edit::Changed { .. } if args.dry_run => plan.tell(global, Told::DryRun),
        Edit::Changed { text, .. } => {
            if !args.yes && !plan.is_wanted(global)? {
                render::note("nothing was changed");
                return Ok(Exit::FAILURE);
            }
            plan.file.replace(text)?;
            plan.tell(global, Told::Done { asked: !args.yes })
        }
    }
}

/// What would be written where.
#[derive(Debug)]
struct Plan {
    host: Host,
    scope: Scope,
    entry: Entry,
    file: HostFile,
    edit: Edit,
    /// A file with nothing but the entry.
    snippet: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    DryRun,
    Done { asked: bool },
}

impl Plan {
    fn make(host: Host, location: Location, entry: Entry) -> Result<Self> {
        let snippet = edit::snippet(host, &entry)?;
        let by_hand = |error: Error| error.hint(format!("write this into it yourself:\n{snippet}"));
        let file = HostFile::open(&location).map_err(by_hand)?;
        let edit = edit::put(host, file.text(), &entry)
            .map_err(|Unfit(why)| by_hand(file::refused(&file.path, why.trim_end())))?;
        Ok(Self {
            scope: location.scope,
            host,
            entry,
            file,
            edit,
            snippet,
        })
    }

    fn unified(&self) -> String {
        let Edit::Changed { text, before } = &self.edit else {
            return String::new();
        };
        let unified = shown::unified(self.file.text(), text);
        if !unified.is_empty() {
            return unified;
        }
        // It is all on one line: the entries are what can be read.
        let marked = |mark: &str, text: &str| -> String {
            text.lines().map(|line| format!("{mark}{line}\n")).collect()
        };
        marked("-", before.as_deref().unwrap_or_default()) + &marked("+", &self.snippet)
    }

    fn shown(&self, paint: Paint) -> String {
        let file = &self.file;
        let path = file.path.display();
        let head = match (&self.edit, file.is_there()) {
            (
                Edit::Changed {
                    before: Some(_), ..
                },
                _,
            ) => {
                let name = &self.entry.name;
                format!("`{path}`, where `{name}` says something else:")
            }
            (_, true) => format!("into `{path}`:"),
            (_, false) => format!("a new file, `{path}`:"),
        };
        let mut shown = render::printable(&head) + "\n";
        if file.target != file.path {
            let target = file.target.display().to_string();
            shown += &format!("(it leads to `{}`)\n", render::one_line(&target));
        }
        shown + &shown::patch(&file.target, file.is_there(), &self.unified(), paint)
    }

    fn is_wanted(&self, global: &Global) -> Result<bool> {
        let Some(prompt) = Prompt::open()? else {
            let message = format!("nobody is here to ask about `{}`", self.file.path.display());
            return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("`--dry-run` shows what would change")
                .hint("`--yes` changes it without asking"));
        };
        let question = match global.quiet {
            true => "change it? [y]es, [n]o: ".to_owned(),
            false => format!("tell {} about it? [y]es, [n]o: ", self.host.title()),
        };
        Ok(prompt.confirm(|paint| self.shown(paint), &question))
    }

    fn json(&self, change: &str, written: bool) -> Value {
        json!({
            "host": self.host.word(),
            "scope": self.scope.word(),
            "path": self.file.path.display().to_string(),
            "name": self.entry.name,
            "change": change,
            "written": written,
            "content": self.snippet,
            "diff": self.unified(),
        })
    }

    fn tell_same(&self, global: &Global) -> Result<Exit> {
        if global.json {
            stdout::json(&self.json("none", false))?;
        } else if !global.quiet {
            let path = self.file.path.display();
            stdout::text(&format!(
                "`{path}` says so already; {}\n",
                self.host.check(self.scope)
            ))?;
        }
        Ok(Exit::SUCCESS)
    }

    fn tell(&self, global: &Global, told: Told) -> Result<Exit> {
        let change = match &self.edit {
            Edit::Changed {
                before: Some(_), ..
            } => "replace",
            _ => "add",
        };
        if global.json {
            stdout::json(&self.json(change, told != Told::DryRun))?;
            return Ok(Exit::SUCCESS);
        }
        let mut text = String::new();
        if !global.quiet && told != (Told::Done { asked: true }) {
            text += &self.shown(Paint::on(&std::io::stdout()));
        }
        match told {
            Told::DryRun => text += "nothing was changed (`--dry-run`)\n",
            Told::Done { .. } if global.quiet => {}
            Told::Done { .. } => text += &self.advice(),
        }
        stdout::text(&text)?;
        Ok(Exit::SUCCESS)
    }

    fn advice(&self) -> String {
        let mut advice = format!(
            "{} knows `{}` now; {}\n",
            self.host.title(),
            self.entry.name,
            self.host.check(self.scope)
        );
        match &self.entry.form {
            Form::Server { .. } => advice += &format!("{}\n", self.host.token()),
            Form::Program { command, .. }
                if self.scope == Scope::Project && Path::new(command).is_absolute() =>
            {
                advice += &format!(
                    "`{command}` must be at the same place for everybody; \
                     with `glovebox` on the `PATH` its name is written instead\n"
                );
            }
            Form::Program { .. } => {}
        }
        advice
    }
}
