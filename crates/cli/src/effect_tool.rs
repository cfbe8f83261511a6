//! `glovebox-effect`: what our own executable is in a simulated sandbox. A tool that knows of the
//! simulation says with it what it would do, and asks what to answer.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

const NAME: &str = "glovebox-effect";
const USAGE: &str = "usage: glovebox-effect context
       glovebox-effect data KEY
       glovebox-effect outcome TOOL
       glovebox-effect record state_mutation|external_api_call TARGET ACTION [JSON]";

/// Whether this process was started under that name.
pub(crate) fn is_called() -> bool {
    let called = env::args_os().next().unwrap_or_default();
    Path::new(&called).file_name().is_some_and(|it| it == NAME)
}

pub(crate) fn run() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let request = match words.as_slice() {
        ["context"] => json!({"op": "context"}),
        ["data", key] => json!({"op": "data", "key": key}),
        ["outcome", tool] => json!({"op": "outcome", "tool": tool}),
        ["record", kind, target, action] => {
            json!({"op": "record", "type": kind, "target": target, "action": action})
        }
        ["record", kind, target, action, data] => match serde_json::from_str::<Value>(data) {
            Ok(data) => json!({
                "op": "record", "type": kind, "target": target, "action": action, "data": data,
            }),
            Err(error) => {
                return tell(
                    2,
                    &format!("{NAME}: the last argument is not JSON: {error}"),
                );
            }
        },
        _ => return tell(2, USAGE),
    };
    // Outside a simulation there is nobody to tell, and that is an answer too.
    let Some(socket) = env::var_os("GLOVEBOX_EFFECTS") else {
        return match words.first() {
            Some(&"context") => print(&json!({"ok": true, "isSimulation": false})),
            _ => tell(1, &format!("{NAME}: this is no simulation")),
        };
    };
    match ask(Path::new(&socket), &request) {
        Ok(answer) => {
            let fine = answer.get("ok") == Some(&Value::Bool(true));
            let printed = print(&answer);
            match fine {
                true => printed,
                false => ExitCode::FAILURE,
            }
        }
        Err(error) => tell(1, &format!("{NAME}: {error}")),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "speaks to its own sandbox's supervisor, from inside"
)]
fn ask(socket: &Path, request: &Value) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn print(answer: &Value) -> ExitCode {
    match writeln!(std::io::stdout(), "{answer}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn tell(code: u8, text: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{text}");
    ExitCode::from(code)
}
