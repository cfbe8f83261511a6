//! `glovebox backend probe`.

use glovebox_engine::{BackendView, Engine};
use glovebox_model::{BackendName, BackendRef, Code, Error, PartialProfile, Result, Stage};
use serde::Serialize;
use tempfile::TempDir;

use super::{looking, of_server, title};
use crate::args::{Global, ProbeArgs};
use crate::commands::doctor::{Health, Lines, Trial, run_in};
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::paint::{Paint, Tone};
use crate::{render, stdout};

/// A backend as the API shows it, and how a real program fared.
#[derive(Debug, Serialize)]
struct Probed {
    #[serde(flatten)]
    view: BackendView,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
}

pub(super) fn run(global: &Global, args: &ProbeArgs) -> Result<Exit> {
    let meant = meant(args)?;
    let context = Context::new(global);
    let probed = match context.server()? {
        Some(_) if args.run => {
            let name = meant.name;
            return Err(
                invalid("`--run` runs something here, not at a server").hint(format!(
                    "at the server: `glovebox run --scratch --backend {name} -- true`"
                )),
            );
        }
        Some(remote) => Probed {
            view: pick(of_server(&remote)?.items, &meant)?,
            trial: None,
        },
        None if args.run => trial(&context, meant)?,
        None => Probed {
            view: seen(&looking(&context)?.0, &meant)?,
            trial: None,
        },
    };
    if global.json {
        stdout::json(&probed)?;
    } else {
        stdout::text(&text(&probed, Paint::on(&std::io::stdout())))?;
    }
    let failed = probed.trial.is_some_and(|it| it.health == Health::Failed);
    Ok(match probed.view.usable && !failed {
        true => Exit::SUCCESS,
        false => Exit::FAILURE,
    })
}

/// The backend, with its runtime in whichever way that is named.
fn meant(args: &ProbeArgs) -> Result<BackendRef> {
    if args.runtime.is_some() && args.name.name != BackendName::Docker {
        return Err(invalid("only containers have a runtime")
            .hint("`glovebox backend probe docker --runtime NAME`"));
    }
    let mut asked = PartialProfile {
        runtime: args.runtime.clone(),
        ..PartialProfile::default()
    };
    asked
        .name_backend(args.name.clone())
        .map_err(|why| invalid(&why))?;
    Ok(BackendRef {
        name: args.name.name,
        runtime: asked.runtime,
    })
}

fn trial(context: &Context<'_>, meant: BackendRef) -> Result<Probed> {
    // Where execs really run: that the engine sees this very directory is part of the question.
    let (engine, seat) = context.engine_with_seat(context::fork_keeper()?)?;
    let overrides = PartialProfile {
        backend: Some(meant.name),
        runtime: meant.runtime.clone(),
        ..PartialProfile::default()
    };
    let trial = run_in(&engine, seat, overrides);
    context.report_recovered(engine.recovered());
    Ok(Probed {
        view: seen(&engine, &meant)?,
        trial: Some(trial),
    })
}

fn seen(engine: &Engine, meant: &BackendRef) -> Result<BackendView> {
    let ids = context::local_ids(None);
    pick(
        engine
            .sandboxes
            .backends_here(&ids, meant.runtime.as_deref()),
        meant,
    )
}

/// The one that is meant: with a runtime that very one, else the first of its name.
fn pick(views: Vec<BackendView>, meant: &BackendRef) -> Result<BackendView> {
    let known: Vec<String> = views.iter().map(title).collect();
    let is_meant = |view: &BackendView| {
        view.name == meant.name && (meant.runtime.is_none() || view.runtime == meant.runtime)
    };
    views.into_iter().find(is_meant).ok_or_else(|| {
        let runtime = meant.runtime.as_deref().unwrap_or_default();
        let message = format!("nothing is known of `{}` with `{runtime}`", meant.name);
        Error::new(Code::NotFound, Stage::Parse, message)
            .hint(format!("known are: {}", known.join(", ")))
    })
}

fn text(probed: &Probed, paint: Paint) -> String {
    let view = &probed.view;
    let mut lines = Lines::new();
    // Why nothing can be seen is said once, below.
    for it in view.guarantees.iter().filter(|_| view.error.is_none()) {
        let health = Health::of(it.grade, Health::Absent);
        let name = it.guarantee.as_str();
        lines.add(health, name, &it.evidence, it.fix.as_deref());
    }
    if let Some(trial) = &probed.trial {
        lines.add_trial(trial);
    }
    let (tone, word) = match view.usable {
        true => (Tone::Good, "usable"),
        false => (Tone::Bad, "not usable"),
    };
    let heading = paint.apply(Tone::Heading, &render::one_line(&title(view)));
    let mut text = format!(
        "{heading}: {}\n{}",
        paint.apply(tone, word),
        lines.text(paint)
    );
    if let Some(error) = &view.error {
        text.push('\n');
        text.push_str(&render::sentence(error, paint));
    }
    text
}

pub(super) fn temporary() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("glovebox-probe-").tempdir();
    made.map_err(|error| {
        let message = "cannot make a temporary directory";
        Error::new(Code::SetupFailed, Stage::Open, message)
            .caused_by(error)
            .hint("set `TMPDIR` to a directory that you may write")
    })
}

fn invalid(message: &str) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}
