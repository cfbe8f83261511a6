//! `glovebox webhook test`.

use glovebox_api::Target;
use std::time::{Duration, Instant};

use glovebox_model::{Code, DeliveryState, Error, Result, Stage, WebhookDelivery};
use glovebox_store::DeliveryFilter;

use super::deliveries::listed;
use crate::args::{Global, WebhookTestArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::{self, one_line};
use crate::stdout;
use glovebox_api::client::Client;

/// How long a server has to send it once.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(300);
/// It is among the newest.
const NEWEST: usize = 100;

pub(super) fn run(global: &Global, args: &WebhookTestArgs) -> Result<Exit> {
    let context = Context::new(global);
    let delivery = match context.server()? {
        Some(remote) => by_server(&remote, &args.name)?,
        // Only a server sends what its API takes on; this process sends it itself.
        None => context.engine()?.webhooks.try_one(&args.name)?,
    };
    if global.json {
        stdout::json(&delivery)?;
    } else {
        tell(&delivery);
    }
    Ok(match delivery.state {
        DeliveryState::Delivered => Exit::SUCCESS,
        DeliveryState::Pending | DeliveryState::Failed => Exit::FAILURE,
    })
}

/// Waits until the server has tried it once.
fn by_server(remote: &Client, name: &str) -> Result<WebhookDelivery> {
    let target = Target::new("/v1/webhooks").segment(name).segment("test");
    let sent: WebhookDelivery = remote.post_nothing(target)?;
    let filter = DeliveryFilter {
        webhook: Some(name.to_owned()),
        limit: NEWEST,
        ..DeliveryFilter::default()
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let page = listed(remote, &filter)?;
        let found = page
            .items
            .into_iter()
            .find(|it| it.message_id == sent.message_id);
        match found {
            Some(it) if it.state != DeliveryState::Pending || it.problem.is_some() => {
                return Ok(it);
            }
            _ if Instant::now() >= deadline => {
                return Err(Error::new(
                    Code::RequestTimeout,
                    Stage::Run,
                    format!("the server has not sent `{}` yet", sent.message_id),
                )
                .hint("see what comes of it: `glovebox webhook deliveries`"));
            }
            _ => std::thread::sleep(PAUSE),
        }
    }
}

fn tell(delivery: &WebhookDelivery) {
    let name = &delivery.webhook;
    match (delivery.status_code, &delivery.problem) {
        (Some(status), None) => render::note(&format!("`{name}` answered {status}")),
        (_, Some(problem)) => {
            render::note(&format!("`{name}` was not told: {}", one_line(problem)));
        }
        (None, None) => render::note(&format!("`{name}` was not told yet")),
    }
}
