//! The proxy, for programs that know of one: HTTP `CONNECT`, requests in absolute form, SOCKS5.
//! It decides nothing by itself.

use std::sync::Arc;
use std::time::Duration;

use glovebox_model::{Approach, Spoken};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::connection::{Finish, Passage, Story};
use crate::destination::Destination;
use crate::downstream::Near;
use crate::exchange::{Exchange, Route, Served, literal};
use crate::exec_session::{Term, no_network};
use crate::gateway::Shared;
use crate::record::Asked;
use crate::socks::{self, Reply};
use crate::upstream::{Far, Upstream, dial_ahead};

const FIRST: Duration = Duration::from_secs(30);

pub(crate) async fn serve(
    shared: &Arc<Shared>,
    term: Option<&Arc<Term>>,
    story: &Arc<Story>,
    mut near: Near,
) -> Finish {
    match timeout(FIRST, near.fill()).await {
        Ok(Ok(1..)) => {}
        Ok(Ok(0)) => return Finish::Orderly,
        Ok(Err(_)) | Err(_) => return Finish::Reset,
    }
    if let Some(term) = term
        && near.charge(term).is_err()
    {
        return Finish::Reset;
    }
    match near.ahead().first() {
        Some(&socks::VERSION) => serve_socks(shared, term, story, near).await,
        _ => serve_http(shared, term, story, near).await,
    }
}

async fn serve_http(
    shared: &Arc<Shared>,
    term: Option<&Arc<Term>>,
    story: &Arc<Story>,
    near: Near,
) -> Finish {
    let exchange = Arc::new(Exchange {
        shared: Arc::clone(shared),
        term: term.cloned(),
        route: Route::Named,
        approach: Approach::Proxied,
        story: Arc::clone(story),
        upstream: Upstream::default().into(),
        turned: std::sync::Mutex::default(),
    });
    let (upgrade, destination, far) = match exchange.serve(near).await {
        Served::Tunnel(upgrade, destination, far) => (upgrade, destination, far),
        Served::Whole => return Finish::Drained,
        Served::Broken => return Finish::Reset,
    };
    let Ok(upgraded) = upgrade.await else {
        return Finish::Reset;
    };
    let Ok(parts) = upgraded.downcast::<TokioIo<Near>>() else {
        return Finish::Reset;
    };
    let mut near = parts.io.into_inner();
    near.unread(&parts.read_buf);
    tunnel(
        shared,
        term,
        story,
        near,
        (destination, far),
        Approach::Connect,
    )
    .await
}

async fn serve_socks(
    shared: &Arc<Shared>,
    term: Option<&Arc<Term>>,
    story: &Arc<Story>,
    mut near: Near,
) -> Finish {
    let wanted = match socks::greet(&mut near).await {
        Ok(Some(wanted)) => wanted,
        Ok(None) => {
            let asked = Asked::new(Approach::Socks, Spoken::Tcp, "", 0);
            shared.inside.record.refuse(&asked, &socks::not_served());
            return Finish::Drained;
        }
        Err(_) => return Finish::Reset,
    };
    let (host, port) = (wanted.host.to_string(), wanted.port);
    let dialled = async {
        let Some(destination) = shared.inside.meant(wanted.host, port) else {
            return Err(literal(&host, port));
        };
        let Some(term) = term else {
            return Err(no_network(&host, port));
        };
        term.decide(&destination)?;
        let far = dial_ahead(shared, term, story, &destination).await?;
        Ok((destination, far))
    };
    let (reply, dialled) = match dialled.await {
        Ok(dialled) => (Reply::Succeeded, Some(dialled)),
        Err(denial) => {
            let asked = Asked::new(Approach::Socks, Spoken::Tcp, &host, port);
            shared.inside.record.refuse(&asked, &denial);
            match denial.status() {
                hyper::StatusCode::FORBIDDEN => (Reply::NotAllowed, None),
                _ => (Reply::HostUnreachable, None),
            }
        }
    };
    if socks::answer(&mut near, reply).await.is_err() {
        return Finish::Reset;
    }
    match dialled {
        Some(dialled) => tunnel(shared, term, story, near, dialled, Approach::Socks).await,
        None => Finish::Drained,
    }
}

async fn tunnel(
    shared: &Arc<Shared>,
    term: Option<&Arc<Term>>,
    story: &Arc<Story>,
    near: Near,
    (destination, far): (Destination, Option<Far>),
    approach: Approach,
) -> Finish {
    let Some(term) = term else {
        return Finish::Reset;
    };
    let Ok(rule) = term.decide(&destination) else {
        return Finish::Reset;
    };
    let passage = Passage {
        shared: Arc::clone(shared),
        term: Arc::clone(term),
        destination,
        rule,
        approach,
        story: Arc::clone(story),
    };
    passage.carry(near, far).await
}
