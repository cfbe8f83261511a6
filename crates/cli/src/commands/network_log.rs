//! `glovebox logs --network`.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use glovebox_model::{Approach, Attempt, Exec, NetCode, Result, Spoken};

use crate::args::Global;
use crate::exit::Exit;
use crate::human::size;
use crate::records::Records;
use crate::render;
use crate::stdout::{self, Reader};

const POLL: Duration = Duration::from_millis(200);

pub(crate) fn run(
    global: &Global,
    records: &Records,
    mut exec: Exec,
    follow: bool,
) -> Result<Exit> {
    let (mut place, mut told) = (0, false);
    loop {
        let (attempts, next) = records.network(&exec, place)?;
        told |= !attempts.is_empty();
        for attempt in &attempts {
            let reader = match global.json {
                true => stdout::json(attempt)?,
                false => stdout::write(format!("{}\n", line(attempt)).as_bytes())?,
            };
            if reader == Reader::Gone {
                return Ok(Exit::SUCCESS);
            }
        }
        if next > place {
            place = next;
            continue;
        }
        if !follow || exec.status.is_final() {
            break;
        }
        thread::sleep(records.pause(POLL));
        exec = records.again(&exec)?;
    }
    if !told && !global.quiet && !global.json {
        render::note("it tried nothing, or had no network");
    }
    Ok(Exit::SUCCESS)
}

fn line(attempt: &Attempt) -> String {
    let at = attempt.at.strftime("%H:%M:%S%.3f");
    let how = match (attempt.approach, attempt.spoken) {
        (Approach::Dns, _) => "dns",
        (_, Spoken::Dns) => "dns",
        (_, Spoken::Udp) => "udp",
        (_, Spoken::Tcp) => "tcp",
        (_, Spoken::Tls) => "tls",
        (_, Spoken::Http) => "http",
        (_, Spoken::Https) => "https",
    };
    let mut text = format!(
        "{at}  {:<19} {how:<6} {}:{}",
        attempt.code, attempt.host, attempt.port
    );
    if let (Some(method), Some(path)) = (&attempt.method, &attempt.path) {
        let _ = write!(text, "  {method} {path}");
    }
    if attempt.ended {
        let (sent, received) = (size(attempt.sent), size(attempt.received));
        let _ = write!(text, "  sent {sent}, got {received}");
    }
    if let (Some(hint), true) = (&attempt.hint, attempt.code != NetCode::Ok) {
        let _ = write!(text, "\n              {hint}");
    }
    text
}
