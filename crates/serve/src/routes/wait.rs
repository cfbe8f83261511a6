//! Waiting for an exec's end.

use std::time::Duration;

use glovebox_engine::{Seen, Viewer};
use glovebox_model::Exec;
use tokio::time::{Instant, sleep_until};

use crate::app::App;
use crate::failure::{Answer, Failure};

/// How often the store is asked about an exec that another server runs.
const LOOK: Duration = Duration::from_millis(500);

/// From an end that is written to one that is over: its files are sealed and its workspace is left
/// in between, which a busy disk can make long.
const LEAVING: Duration = Duration::from_secs(10);

/// One that is there for the caller, by its id or by the caller's own. Who is told of its end
/// finds its files whole and its workspace free.
pub(super) async fn find(app: &App, eyes: &Viewer, name: &str) -> Answer<Seen<Exec>> {
    let (eyes, name) = (eyes.clone(), name.to_owned());
    let found = app
        .ask("find", move |dispatcher| dispatcher.find(&eyes, &name))
        .await;
    let exec = found.map_err(|failure| match failure.0.code {
        glovebox_model::Code::NotFound => Failure::no_exec(),
        _ => failure,
    })?;
    if exec.status.is_final()
        && let Some(mut live) = app.dispatcher().attend(&exec)
    {
        let _ = tokio::time::timeout(LEAVING, live.end()).await;
    }
    Ok(exec)
}

/// The record once the exec has ended, or as it is when the time is over.
pub(super) async fn settle(
    app: &App,
    eyes: &Viewer,
    mut exec: Seen<Exec>,
    most: Duration,
) -> Answer<Seen<Exec>> {
    let deadline = Instant::now() + most;
    loop {
        let mut live = app.dispatcher().attend(&exec);
        if let Some(live) = &mut live {
            tokio::select! {
                () = live.end() => {}
                () = sleep_until(deadline) => {}
            }
            if let Some(record) = live.record() {
                return Ok(record);
            }
        }
        // Before the look at the record: an end in between is not missed.
        let is_left = app.dispatcher().is_closed() && app.dispatcher().watch(&exec).is_none();
        exec = find(app, eyes, exec.exec_id.as_str()).await?;
        if exec.status.is_final() || Instant::now() >= deadline || is_left {
            return Ok(exec);
        }
        let pause = match live {
            // Its row is being closed.
            Some(_) => Duration::from_millis(2),
            // It is another server's.
            None => LOOK,
        };
        sleep_until(deadline.min(Instant::now() + pause)).await;
    }
}
