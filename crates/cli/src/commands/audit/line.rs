//! One entry on one line, in columns that do not depend on the other lines, since they may come
//! one at a time.

use glovebox_store::{AgedEntry, Entry, Kind};
use serde_json::Value;

use crate::human::{clip, duration, time};
use crate::paint::{Paint, Tone};
use crate::render::one_line;

/// `e_` and enough digits to find it by.
const ID: usize = 14;
const COMMAND_MOST: usize = 40;

pub(super) fn header(paint: Paint) -> String {
    let line = format!(
        "{:>6}  {:<20}  {:<8}  {:<12}  {:<ID$}  {}",
        "SEQ", "TIME", "TIER", "KIND", "EXEC", "WHAT"
    );
    paint.apply(Tone::Heading, &line) + "\n"
}

pub(super) fn line(aged: &AgedEntry, paint: Paint) -> String {
    let (entry, tier) = (&aged.entry, aged.retention_tier);
    let exec = entry.exec_id.as_ref().map_or("-", |id| &id.as_str()[..ID]);
    let kind = paint.apply(tone(entry), &format!("{:<12}", entry.kind.as_str()));
    let at = time(entry.at);
    let what = one_line(&what(entry));
    format!(
        "{:>6}  {at:<20}  {tier:<8}  {kind}  {exec:<ID$}  {what}\n",
        entry.seq
    )
}

pub(super) fn tone(entry: &Entry) -> Tone {
    match entry.kind {
        Kind::Planned | Kind::Started | Kind::Administered => Tone::Plain,
        Kind::Outcome if entry.body["status"] == "succeeded" => Tone::Good,
        Kind::Outcome | Kind::Refused | Kind::Recovered => Tone::Bad,
    }
}

pub(super) fn what(entry: &Entry) -> String {
    let body = &entry.body;
    let command = || clip(body["cmd"].as_str().unwrap_or("-"), COMMAND_MOST);
    match entry.kind {
        Kind::Planned | Kind::Started => command(),
        Kind::Administered => clip(body["event"].as_str().unwrap_or("-"), COMMAND_MOST),
        Kind::Refused => format!("{}: {}", command(), ending(body)),
        Kind::Outcome | Kind::Recovered => ending(body),
    }
}

fn ending(body: &Value) -> String {
    let text = |name: &str| body[name].as_str();
    let number = |name: &str| body[name].as_i64();
    let status = text("status").unwrap_or("-");
    let mut words = vec![status.to_owned()];
    words.extend(number("exit_code").map(|code| format!("exit code {code}")));
    words.extend(number("signal").map(|signal| format!("signal {signal}")));
    words.extend(text("limit_hit").map(|limit| format!("limit: {limit}")));
    let code = body["error"]["code"]
        .as_str()
        .filter(|code| *code != status);
    words.extend(code.map(|code| format!("error: {code}")));
    words.extend(body["duration_ms"].as_u64().map(duration));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::SpaceId;
    use serde_json::json;

    fn entry(kind: Kind, body: Value) -> Entry {
        Entry {
            space_id: SpaceId::local(),
            seq: 7,
            at: "2026-08-01T10:00:00.123456Z".parse().unwrap(),
            kind,
            exec_id: Some(format!("e_{}", "0a".repeat(16)).parse().unwrap()),
            ids: [].into(),
            tags: Vec::new(),
            body,
            prev_hash: String::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn a_line_says_what_happened() {
        let entries = [
            entry(Kind::Planned, json!({"cmd": "ma\u{1b}ke"})),
            entry(
                Kind::Outcome,
                json!({"status": "killed", "signal": 9, "limit_hit": "memory", "duration_ms": 1200}),
            ),
            entry(
                Kind::Refused,
                json!({"cmd": "sh", "status": "policy_denied", "error": {"code": "policy_denied"}}),
            ),
        ];
        let now = "2026-08-10T10:00:00Z".parse().unwrap();
        let aged = entries.map(|entry| AgedEntry::new(entry, now));
        let lines: String = aged.iter().map(|it| line(it, Paint::Plain)).collect();
        assert_eq!(
            header(Paint::Plain) + &lines,
            "   SEQ  TIME                  TIER      KIND          EXEC            WHAT
     7  2026-08-01T10:00:00Z  cold      planned       e_0a0a0a0a0a0a  ma\\u{1b}ke
     7  2026-08-01T10:00:00Z  cold      outcome       e_0a0a0a0a0a0a  killed, signal 9, limit: memory, 1.2s
     7  2026-08-01T10:00:00Z  cold      refused       e_0a0a0a0a0a0a  sh: policy_denied
"
        );
    }
}
