//! `glovebox policy replay`.

use std::fmt::Write as _;

use glovebox_api::{Free, ReplayRequest, Target};
use glovebox_engine::{Difference, Replayed};
use glovebox_model::{Permit, Reason, Result, SpaceId};
use glovebox_policy::Config;

use crate::args::{Global, ReplayArgs};
use crate::context::{Context, config_text};
use crate::exit::Exit;
use crate::human::{clip, count, time};
use crate::paint::{Paint, Tone};
use crate::render::one_line;
use crate::stdout;

const COMMAND_MOST: usize = 100;

pub(super) fn run(global: &Global, args: &ReplayArgs) -> Result<Exit> {
    let context = Context::new(global);
    let text = config_text(&args.file)?;
    // A mistake is told with the name of the file, wherever it would be tried.
    let config = Config::parse(&text, &args.file.display().to_string())?;
    let replayed = match context.server()? {
        Some(remote) => remote.post_slowly(
            Target::new("/v1/policy/replay"),
            &ReplayRequest {
                config: Free(text),
                limit: Some(args.limit),
            },
        )?,
        None if !context.place()?.is_there()? => Replayed::default(),
        // By the engine itself: it looks at more records than a server does, and knows the file's name.
        None => context
            .engine()?
            .approvals
            .replay(&SpaceId::local(), &config, args.limit)?,
    };
    if global.json {
        stdout::json(&replayed)?;
    } else {
        stdout::text(&shown(&replayed, Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn shown(replayed: &Replayed, paint: Paint) -> String {
    let mut text = String::new();
    for Difference {
        exec_id,
        at,
        command,
        said,
        would_say,
        reasons,
    } in &replayed.differences
    {
        let at = at.map_or_else(|| "-".to_owned(), time);
        let change = format!("{said} -> {would_say}");
        let _ = writeln!(
            text,
            "{exec_id}  {at}  {}  {}",
            paint.apply(tone(*said, *would_say), &change),
            clip(&one_line(command), COMMAND_MOST)
        );
        let decisive = reasons.iter().filter(|it| it.permit == *would_say);
        text.extend(decisive.map(reason));
    }
    let looked_at = count(replayed.execs, "exec", "execs");
    let differ = replayed.differences.len();
    let _ = writeln!(text, "{looked_at} on record, {differ} decided otherwise");
    text
}

/// Looser is what to look at twice.
fn tone(said: Permit, would_say: Permit) -> Tone {
    match would_say < said {
        true => Tone::Bad,
        false => Tone::Caution,
    }
}

pub(super) fn reason(reason: &Reason) -> String {
    let mut text = format!("  {}: {}", reason.permit, reason.text);
    if let Some(part) = &reason.part {
        let _ = write!(text, " (`{part}`)");
    }
    if let Some(rule) = &reason.rule {
        let _ = write!(text, " --> {}:{}", rule.file, rule.line);
    }
    one_line(&text) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    #[test]
    fn a_difference_is_told_with_what_decides_it() {
        let exec = sample::exec(1);
        let replayed = Replayed {
            execs: 7,
            differences: vec![Difference {
                exec_id: exec.exec_id.clone(),
                at: None,
                command: "curl x\n".to_owned(),
                said: Permit::Allow,
                would_say: Permit::Ask,
                reasons: sample::approval().ask.reasons,
            }],
        };
        let expected = format!(
            "{}  -  allow -> ask  curl x\u{2424}\n  \
             ask: pipes into a shell (`curl x | sh`) --> team.toml:3\n\
             7 execs on record, 1 decided otherwise\n",
            exec.exec_id
        );
        assert_eq!(shown(&replayed, Paint::Plain), expected);
        assert_eq!(tone(Permit::Deny, Permit::Allow), Tone::Bad);
    }
}
