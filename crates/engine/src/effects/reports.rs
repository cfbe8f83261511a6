//! What tools that know of a simulation say of themselves: lines of JSON over a socket in the
//! sandbox, one answer for each. Nothing that is said here is believed about anything but itself.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_gateway::{FaultInjection, Simulated, Try};
use glovebox_model::{Code, Deed, Error, ExecId, Reported, Result, Simulation, Stage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::gathering::{Gathering, Observed};

/// Where it stands in the sandbox.
pub(crate) const SOCKET: &str = "/run/glovebox/effects.sock";
/// Where the command stands that speaks it.
pub(crate) const DIRECTORY: &str = "/run/glovebox";

const CONNECTIONS_MOST: usize = 32;
const LINE_MOST: u64 = 16 << 10;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Asked {
    /// Whether, and in what, it runs.
    Context {},
    /// What it would do.
    Record {
        #[serde(rename = "type")]
        kind: Kind,
        target: String,
        action: String,
        #[serde(default)]
        data: Option<Value>,
        /// A tool may know that it would fail.
        #[serde(default)]
        failure_reason: Option<String>,
        #[serde(default)]
        simulated_result: Option<Value>,
    },
    /// What to say instead of the truth.
    Data { key: String },
    /// How a call of a tool fares.
    Outcome { tool: String },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    StateMutation,
    ExternalApiCall,
}

#[derive(Debug, Serialize)]
struct Refusal {
    ok: bool,
    error: String,
}

/// Served until it is dropped.
#[derive(Debug)]
pub(crate) struct Reports(AbortHandle);

impl Drop for Reports {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Desk {
    exec: ExecId,
    simulation: Simulation,
    weather: Mutex<FaultInjection>,
    gathering: Arc<Gathering>,
    places: Semaphore,
}

impl Reports {
    pub(crate) fn serve(
        listener: OwnedFd,
        exec: &ExecId,
        simulation: &Simulation,
        gathering: Arc<Gathering>,
        runtime: &Handle,
    ) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let message = "the socket for effects cannot be served";
            Error::new(Code::SetupFailed, Stage::Admit, message).caused_by(error)
        };
        let _inside = runtime.enter();
        let listener = StdListener::from(listener);
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        let desk = Arc::new(Desk {
            exec: exec.clone(),
            weather: Mutex::new(Simulated::new(simulation)?.weather()),
            simulation: simulation.clone(),
            gathering,
            places: Semaphore::new(CONNECTIONS_MOST),
        });
        let task = runtime.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    Some(_) = connections.join_next() => continue,
                };
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(attend(Arc::clone(&desk), stream));
                    }
                    // Out of descriptors: not better at once.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        });
        Ok(Self(task.abort_handle()))
    }
}

async fn attend(desk: Arc<Desk>, stream: UnixStream) {
    let Ok(_place) = desk.places.try_acquire() else {
        return;
    };
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut lines).take(LINE_MOST);
        match bounded.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 == LINE_MOST => {
                let _ = write
                    .write_all(&answer(refuse("the line is too long")))
                    .await;
                return;
            }
            Ok(_) => {}
        }
        if write.write_all(&answer(desk.say(&line))).await.is_err() {
            return;
        }
    }
}

fn answer(value: Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn refuse(why: impl Into<String>) -> Value {
    let refusal = Refusal {
        ok: false,
        error: why.into(),
    };
    serde_json::to_value(refusal).unwrap_or_default()
}

impl Desk {
    fn say(&self, line: &[u8]) -> Value {
        let asked = match serde_json::from_slice::<Asked>(line) {
            Ok(asked) => asked,
            Err(error) => return refuse(format!("that is no request: {error}")),
        };
        match asked {
            Asked::Context {} => json!({
                "ok": true,
                "isSimulation": true,
                "exec_id": self.exec,
                "simulatedResponses": self.simulation.data,
            }),
            Asked::Data { key } => match self.simulation.data.get(&key) {
                Some(value) => json!({ "ok": true, "value": value }),
                None => refuse(format!("there is no simulated data for `{key}`")),
            },
            Asked::Outcome { tool } => {
                let mut weather = self.weather.lock().unwrap_or_else(PoisonError::into_inner);
                let outcome = weather.next(Try::Tool(&tool), Instant::now());
                json!({ "ok": true, "outcome": outcome })
            }
            Asked::Record {
                kind,
                target,
                action,
                data,
                failure_reason,
                simulated_result,
            } => {
                let reported = Reported {
                    target,
                    action,
                    data,
                };
                let seq = self.gathering.add(Observed {
                    deed: match kind {
                        Kind::StateMutation => Deed::StateMutation(reported),
                        Kind::ExternalApiCall => Deed::ExternalApiCall(reported),
                    },
                    refusal: failure_reason,
                    simulated_result,
                });
                json!({ "ok": true, "seq": seq })
            }
        }
    }
}
