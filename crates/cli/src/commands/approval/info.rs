//! `glovebox approval info`.

use glovebox_model::{Approval, Result};

use super::list::tone;
use crate::args::Global;
use crate::exit::Exit;
use crate::human::time;
use crate::key_values::KeyValues;
use crate::paint::Paint;
use crate::prompt::shown;
use crate::stdout;

pub(super) fn run(global: &Global, approval: &Approval) -> Result<Exit> {
    if global.json {
        stdout::json(approval)?;
    } else {
        stdout::text(&text(approval, Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn text(approval: &Approval, paint: Paint) -> String {
    let mut sheet = KeyValues::new(paint);
    sheet.toned("state", tone(approval.state), approval.state.as_str());
    sheet.line("exec", approval.exec_id.as_str());
    sheet.line("created", &time(approval.created_at));
    sheet.text.push_str(&shown(approval, paint));
    for reply in &approval.replies {
        let reason = reply.answer.reason().map(|it| format!(": {it}"));
        let line = format!(
            "`{}` at {} by {}{}",
            reply.answer.as_str(),
            time(reply.at),
            reply.by,
            reason.unwrap_or_default()
        );
        sheet.line("reply", &line);
    }
    sheet.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;
    use glovebox_model::{Answer, Reply, Via};

    #[test]
    fn every_reply_is_told_with_its_reason() {
        let mut approval = sample::approval();
        approval.replies.push(Reply {
            by: "dana".to_owned(),
            user_id: None,
            at: approval.created_at,
            via: Via::Rest,
            answer: Answer::Deny {
                reason: Some("no\nfunny lines".to_owned()),
            },
        });
        let text = text(&approval, Paint::Plain);
        assert!(text.starts_with("state       pending\n"), "{text}");
        let reply = text.lines().last().unwrap();
        assert!(reply.starts_with("reply       `deny` at "), "{reply}");
        assert!(reply.ends_with("by dana: no\u{2424}funny lines"), "{reply}");
    }
}
