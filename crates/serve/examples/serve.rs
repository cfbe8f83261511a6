//! Scratch.
#![allow(clippy::print_stderr, clippy::expect_used)]
use glovebox_engine::{Dispatcher, HouseRules, Spawner, host_facts};
use glovebox_serve::{Options, Stop, TokenKey, bootstrap, run};
use glovebox_store::StateDir;

fn main() {
    let spawner = Spawner::fork().expect("spawner");
    let dir = std::env::args().nth(1).expect("state dir");
    let listen = std::env::args().nth(2).expect("listen");
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let state = StateDir::open(&dir).expect("state");
    let config = glovebox_policy::Config::parse("", "none").expect("config");
    let rules = HouseRules {
        state,
        database: None,
        config,
        host: host_facts(),
        concurrency_ceiling: 16,
    };
    let dispatcher = Dispatcher::open(rules, spawner).expect("dispatcher");
    let path = dispatcher.state().path().to_owned();
    let key = TokenKey::load_or_create(&path).expect("key");
    bootstrap(dispatcher.store().expect("store"), &key, &path).expect("bootstrap");
    let mut options = Options::new(&path);
    options.listen = listen;
    options.bad_tokens = 1_000_000;
    let summary = run(options, dispatcher, Stop::default(), |l| {
        eprintln!("listening on {}", l.url())
    })
    .expect("run");
    eprintln!("{summary:?}");
}
