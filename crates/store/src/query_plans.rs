//! What listing and querying cost does not grow with what is kept: each walks an index, in both
//! databases.

use glovebox_model::{ApprovalState, DeliveryState, Mode, SpaceId, Status};
use jiff::Timestamp;

use crate::approval_rows::{OVERDUE, PENDING_OF_EXEC};
use crate::approvals::ApprovalFilter;
use crate::execs::ExecFilter;
use crate::grants::GrantFilter;
use crate::ledger::index;
use crate::ledger::timeline::along_thread;
use crate::ledger::trail::{Trail, end_of_walk, length_of_list};
use crate::ledger::{EntryFilter, Kind};
use crate::outbox::{DUE, DeliveryFilter};
use crate::sql::{Session, Shape, Value, values};
use crate::state_dir::StateDir;
use crate::store::Store;
use crate::tokens::TokenFilter;
use crate::verified_snapshots::newest_of_term;

#[path = "../tests/store/common/postgres.rs"]
#[allow(
    dead_code,
    clippy::print_stderr,
    reason = "the integration tests use the rest; what is skipped is said"
)]
mod postgres;

/// Many rows of one space, with as little in each as the columns need.
const FILL_SQLITE: &str = "WITH RECURSIVE n(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
    INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash, record)
    SELECT 'local', format('e_%032x', i * 7919), 'o', i, i, x'00', json_object(
        'status', iif(i % 1000 = 0, 'failed', 'succeeded'),
        'client_id', format('c%d', i),
        'project_id', format('p%d', i % 100),
        'ids', json_object('task_id', format('t%d', i / 10), 'conversation_id', format('c%d', i / 100),
            'agent_id', format('a%d', i % 100)))
    FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
    INSERT INTO ledger_entries SELECT 'local', i, i * 1000, 'planned', '', '{}', '[]', '{}', x'00', x'00'
    FROM n;
    INSERT INTO ledger_terms SELECT space_id, 'kind=planned', at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, format('task_id=t%d', seq / 10), at, seq
    FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, 'tag=live_execution', at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, 'tag=' || iif(seq % 100 = 0, 'failure', 'success'),
        at, seq FROM ledger_entries;
    INSERT INTO approvals SELECT format('apr_%032x', opened_seq), space_id, exec_id, conversation_id,
        opened_seq, opened_seq * 1000, iif(opened_seq % 1000 = 0, opened_seq * 2000, NULL),
        iif(opened_seq % 1000 = 0, 'pending', 'used'), '{}' FROM sandbox_execs;
    INSERT INTO grants SELECT format('grt_%032x', opened_seq), space_id, conversation_id, exec_id,
        opened_seq * 1000, iif(opened_seq % 3 = 0, 1, NULL), 0, '{}', opened_seq * 2000, NULL
    FROM sandbox_execs;
    INSERT INTO outbox (delivery_id, message_id, webhook, event, created_at, state, attempts, due_at,
        ended_at, facts)
    SELECT format('msg_%032x', opened_seq), '', format('w%d', opened_seq % 3), '', opened_seq * 1000,
        iif(opened_seq % 1000 = 0, 'pending', 'delivered'), 1,
        iif(opened_seq % 1000 = 0, opened_seq, NULL), iif(opened_seq % 1000 = 0, NULL, 1), '{}'
    FROM sandbox_execs;";

const FILL_POSTGRES: &str = "
    INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash,
        record, status, client_id, project_id, task_id, conversation_id, agent_id)
    SELECT 'local', 'e_' || lpad(to_hex(i * 7919), 32, '0'), 'o', i, i, '\\x00', '{}',
        CASE WHEN i % 1000 = 0 THEN 'failed' ELSE 'succeeded' END, 'c' || i, 'p' || (i % 100),
        't' || (i / 10), 'c' || (i / 100), 'a' || (i % 100)
    FROM generate_series(1, 30000) i;
    INSERT INTO ledger_entries SELECT 'local', i, i * 1000, 'planned', '', '{}', '[]', '{}', '\\x00', '\\x00'
    FROM generate_series(1, 30000) i;
    INSERT INTO ledger_terms SELECT space_id, 'kind=planned', at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, 'task_id=t' || (seq / 10), at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, 'tag=live_execution', at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, 'tag=' || CASE WHEN seq % 100 = 0 THEN 'failure'
        ELSE 'success' END, at, seq FROM ledger_entries;
    INSERT INTO approvals SELECT 'apr_' || lpad(to_hex(opened_seq), 32, '0'), space_id, exec_id,
        conversation_id, opened_seq, opened_seq * 1000,
        CASE WHEN opened_seq % 1000 = 0 THEN opened_seq * 2000 END,
        CASE WHEN opened_seq % 1000 = 0 THEN 'pending' ELSE 'used' END, '{}' FROM sandbox_execs;
    INSERT INTO grants SELECT 'grt_' || lpad(to_hex(opened_seq), 32, '0'), space_id,
        conversation_id, exec_id, opened_seq * 1000,
        CASE WHEN opened_seq % 3 = 0 THEN 1 END, 0, '{}', opened_seq * 2000, NULL
    FROM sandbox_execs;
    INSERT INTO outbox (delivery_id, message_id, webhook, event, created_at, state, attempts, due_at,
        ended_at, facts)
    SELECT 'msg_' || lpad(to_hex(opened_seq), 32, '0'), '', 'w' || (opened_seq % 3), '',
        opened_seq * 1000, CASE WHEN opened_seq % 1000 = 0 THEN 'pending' ELSE 'delivered' END, 1,
        CASE WHEN opened_seq % 1000 = 0 THEN opened_seq END,
        CASE WHEN opened_seq % 1000 <> 0 THEN 1 END, '{}' FROM sandbox_execs;
    ANALYZE;";

/// How the database does it: the steps, one on each line.
fn plan(session: &Session, sql: &str, values: &[Value<'_>]) -> String {
    let steps = if session.is_shared() {
        session.rows(&format!("EXPLAIN {sql}"), values, |row| row.text(0))
    } else {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        session.rows(&explain, values, |row| row.text(3))
    };
    steps.unwrap().join("\n")
}

fn assert_walks(plan: &str, what: &str, session: &Session, index: &str) {
    // A primary key of SQLite's tables without row ids has no name of its own.
    let named = if session.is_shared() || !index.ends_with("_pkey") {
        index
    } else {
        "PRIMARY KEY"
    };
    assert!(plan.contains(named), "{what}: {plan}");
    for bad in ["SCAN ", "TEMP ", "Seq Scan", "Sort", "Bitmap"] {
        assert!(!plan.contains(bad), "{what}: {plan}");
    }
}

fn exec_filters() -> Vec<(ExecFilter, &'static str)> {
    let mut filters = Vec::new();
    for bits in 0..64u8 {
        let on = |bit: u8| bits & (1 << bit) != 0;
        let filter = ExecFilter {
            status: on(0).then_some(Status::Failed),
            task_id: on(1).then(|| "t7".to_owned()),
            conversation_id: on(2).then(|| "c7".to_owned()),
            agent_id: on(5).then(|| "a7".to_owned()),
            project_id: on(3).then(|| "p7".parse().unwrap()),
            id_prefix: None,
            limit: 10,
            cursor: on(4).then(|| "15000".to_owned()),
        };
        let index = match (on(1), on(2), on(5), on(3), on(0)) {
            (true, ..) => "execs_by_task",
            (_, true, ..) => "execs_by_conversation",
            (_, _, true, ..) => "execs_by_agent",
            (_, _, _, true, _) => "execs_by_project",
            (.., true) => "execs_by_status",
            _ => "execs_by_arrival",
        };
        filters.push((filter, index));
    }
    filters
}

fn entry_filters() -> Vec<(EntryFilter, &'static str)> {
    let any = EntryFilter::default;
    let time = |us| Some(Timestamp::from_microsecond(us).unwrap());
    let task_id = Some("t7".to_owned());
    let kind = Some(Kind::Planned);
    let by_time = "entries_by_time";
    let by_term = "ledger_terms_pkey";
    vec![
        (any(), by_time),
        (
            EntryFilter {
                since: time(5),
                until: time(900_000),
                ..any()
            },
            by_time,
        ),
        (
            EntryFilter {
                kind,
                until: time(900_000),
                ..any()
            },
            by_term,
        ),
        (
            EntryFilter {
                kind,
                task_id,
                since: time(5),
                ..any()
            },
            by_term,
        ),
        (
            EntryFilter {
                cursor: Some("9000000.9000".to_owned()),
                kind,
                ..any()
            },
            by_term,
        ),
        (
            EntryFilter {
                tags: vec!["live_execution".to_owned(), "failure".to_owned()],
                until: time(20_000_000),
                ..any()
            },
            by_term,
        ),
        (any().of_mode(Mode::Run), by_term),
    ]
}

fn approval_filters() -> Vec<(ApprovalFilter, &'static str)> {
    let mut filters = Vec::new();
    for bits in 0..32u8 {
        let on = |bit: u8| bits & (1 << bit) != 0;
        if on(2) && !on(0) {
            continue;
        }
        let filter = ApprovalFilter {
            space: on(0).then(SpaceId::local),
            state: on(1).then_some(ApprovalState::Pending),
            conversation_id: on(2).then(|| "c7".to_owned()),
            exec: on(3).then(|| format!("e_{:032x}", 7919).parse().unwrap()),
            limit: 10,
            cursor: on(4).then(|| "15000000.apr_1".to_owned()),
        };
        let index = match (on(3), on(2), on(0), on(1)) {
            (true, ..) => "approvals_by_exec",
            (_, true, ..) => "approvals_by_conversation",
            (_, _, true, true) => "approvals_by_space_and_state",
            (_, _, true, false) => "approvals_by_space",
            (_, _, false, true) => "approvals_by_state",
            (_, _, false, false) => "approvals_by_age",
        };
        filters.push((filter, index));
    }
    filters
}

fn grant_filters() -> Vec<(GrantFilter, &'static str)> {
    let filter = |space: bool, talk: bool, all: bool| GrantFilter {
        space: space.then(SpaceId::local),
        conversation_id: talk.then(|| "c7".to_owned()),
        include_ended: all,
        limit: 10,
        cursor: all.then(|| "15000000.grt_1".to_owned()),
    };
    [false, true]
        .into_iter()
        .flat_map(|all| {
            [
                (filter(false, false, all), "grants_by_age"),
                (filter(true, false, all), "grants_by_space"),
                (filter(true, true, all), "grants_by_conversation"),
            ]
        })
        .collect()
}

fn assert_messages_do_not_scan(session: &Session) -> glovebox_model::Result<()> {
    for (webhook, state, index) in [
        (None, None, "outbox_by_age"),
        (Some("w1"), None, "outbox_by_webhook"),
        (None, Some(DeliveryState::Delivered), "outbox_by_state"),
        (
            Some("w1"),
            Some(DeliveryState::Delivered),
            "outbox_by_webhook",
        ),
    ] {
        let filter = DeliveryFilter {
            webhook: webhook.map(str::to_owned),
            state,
            limit: 10,
            cursor: Some("15000000.msg_1".to_owned()),
        };
        let (sql, values) = filter.query()?;
        let plan = plan(session, &sql, &values);
        assert_walks_some(&plan, &format!("{filter:?}"), session, index);
    }
    let due = plan(session, DUE, values!["w1", 1_000_000_i64, 4_i64]);
    assert_walks_some(&due, "due", session, "outbox_due");
    Ok(())
}

/// As [`assert_walks`], where a listing may be of everything there is. PostgreSQL knows that all
/// rows of the test are of one space and may take another index with the same order.
fn assert_walks_some(plan: &str, what: &str, session: &Session, index: &str) {
    if !session.is_shared() {
        assert!(plan.contains(&format!("INDEX {index}")), "{what}: {plan}");
    }
    assert!(plan.to_lowercase().contains("index"), "{what}: {plan}");
    for bad in ["TEMP ", "Seq Scan", "Sort", "Bitmap"] {
        assert!(!plan.contains(bad), "{what}: {plan}");
    }
}

fn assert_requests_do_not_scan(session: &Session) -> glovebox_model::Result<()> {
    for (filter, index) in approval_filters() {
        let (sql, values) = filter.query(session)?;
        let plan = plan(session, &sql, &values);
        assert_walks_some(&plan, &format!("{filter:?}"), session, index);
    }
    for (filter, index) in grant_filters() {
        let (sql, values) = filter.query(session)?;
        let plan = plan(session, &sql, &values);
        assert_walks_some(&plan, &format!("{filter:?}"), session, index);
    }
    let overdue = plan(session, OVERDUE, values![5_000_000_i64, 10_i64]);
    assert_walks_some(&overdue, "overdue", session, "approvals_by_expiry");
    let pending = plan(session, PENDING_OF_EXEC, values!["local", "e_1"]);
    assert_walks_some(&pending, "pending", session, "approvals_by_exec");
    Ok(())
}

fn assert_memory_does_not_scan(session: &Session) {
    let thread = values!["local", "tag=success", 30_000_i64, 9000_i64, 9_i64, 50_i64];
    let rare = values!["local", "task_id=t7"];
    let ends = values![
        "local",
        30_000_000_i64,
        0_i64,
        0_i64,
        "tag=success",
        500_i64
    ];
    for (what, sql, values) in [
        ("a timeline", along_thread(), &thread[..]),
        ("a mark", newest_of_term(), &rare[..]),
        ("a length", length_of_list(), &ends[..]),
        ("an end", end_of_walk(true), &ends[..5]),
    ] {
        // What is counted is what the walk inside gives.
        let plan = plan(session, &sql, values).replace("SCAN c", "");
        assert_walks(&plan, what, session, "ledger_terms_pkey");
    }
}

fn assert_nothing_scans(store: &Store) {
    let space = SpaceId::local();
    store
        .read(|session| {
            for (filter, index) in exec_filters() {
                let (sql, values) = filter.query(session, &space)?;
                let plan = plan(session, &sql, &values);
                assert_walks(&plan, &format!("{filter:?}"), session, index);
            }
            let alike = ExecFilter {
                id_prefix: Some("e_1".to_owned()),
                ..ExecFilter::default()
            };
            let (sql, values) = alike.query(session, &space)?;
            let alike = plan(session, &sql, &values);
            assert!(
                session.is_shared() || alike.contains("exec_id>?"),
                "{alike}"
            );
            for (filter, index) in entry_filters() {
                let trail = Trail::of(session, &space, &filter, 30_000)?;
                let plan = plan(session, &trail.sql, &trail.values);
                assert_walks(&plan, &format!("{filter:?}"), session, index);
                if !session.is_shared() {
                    assert!(plan.contains("(at,seq)<(?,?)"), "{filter:?}: {plan}");
                }
            }
            assert_memory_does_not_scan(session);
            assert_requests_do_not_scan(session)?;
            assert_messages_do_not_scan(session)?;
            let open = plan(
                session,
                "SELECT DISTINCT owner_id FROM sandbox_execs WHERE closed_seq IS NULL",
                &[],
            );
            assert!(open.contains("execs_still_open"), "{open}");
            Ok(())
        })
        .unwrap();
    for (filter, _) in entry_filters() {
        let found = store.query(&space, &filter).unwrap();
        assert!(!found.items.is_empty(), "{filter:?}");
    }
}

#[test]
fn every_listing_of_sqlite_walks_an_index_and_sorts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = Store::open(&state).unwrap();
    let connection = rusqlite::Connection::open(state.database()).unwrap();
    connection.execute_batch(FILL_SQLITE).unwrap();
    assert_nothing_scans(&store);
    store
        .read(|session| {
            for bits in 0..8u8 {
                let filter = TokenFilter {
                    space: (bits & 1 != 0).then(SpaceId::local),
                    include_unusable: bits & 2 != 0,
                    limit: 0,
                    cursor: (bits & 4 != 0).then(|| "5.t_1".to_owned()),
                };
                let (sql, values) = filter.query(Timestamp::now())?;
                let plan = plan(session, &sql, &values);
                assert!(!plan.contains("TEMP"), "{filter:?}: {plan}");
                assert!(plan.contains("INDEX tokens_"), "{filter:?}: {plan}");
            }
            Ok(())
        })
        .unwrap();
    assert!(store.stray_owners(&state).unwrap().is_empty());
}

#[test]
fn every_listing_of_postgres_walks_an_index_and_sorts_nothing() {
    let Some(database) = postgres::Database::create() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = Store::connect(&state, &database.url).unwrap();
    database.client().batch_execute(FILL_POSTGRES).unwrap();
    assert_nothing_scans(&store);
    assert!(store.stray_owners(&state).unwrap().is_empty());
}

/// A ledger of so many entries: half of them live, a hundredth failures, and no simulation failed.
fn ledger_of(entries: u32) -> (tempfile::TempDir, StateDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = Store::open(&state).unwrap();
    let connection = rusqlite::Connection::open(state.database()).unwrap();
    let tags = [
        ("live_execution", "seq % 2 = 0"),
        ("simulation_mode", "seq % 2 = 1"),
        ("failure", "seq % 100 = 0"),
        ("success", "seq % 100 <> 0"),
    ];
    let terms: String = tags
        .iter()
        .map(|(tag, which)| {
            format!(
                "INSERT INTO ledger_terms SELECT space_id, 'tag={tag}', at, seq
                 FROM ledger_entries WHERE {which};"
            )
        })
        .collect();
    let fill = format!(
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {entries})
         INSERT INTO ledger_entries
         SELECT 'local', i, i * 1000, 'outcome', '', '{{}}', '[]', '{{}}', x'00', x'00' FROM n;
         {terms} COMMIT;"
    );
    connection.execute_batch(&fill).unwrap();
    (dir, state, store)
}

/// Steps of SQLite's machine for all statements of one page of a search.
fn steps(state: &StateDir, filter: &EntryFilter) -> i32 {
    let connection = rusqlite::Connection::open(state.database()).unwrap();
    let session = Session::Sqlite(connection, Shape::default());
    let reach = index::reach(&session, "local").unwrap();
    let space = SpaceId::local();
    let trail = Trail::of(&session, &space, filter, reach).unwrap();
    session.rows(&trail.sql, &trail.values, |_| Ok(())).unwrap();
    let Session::Sqlite(connection, _) = &session else {
        unreachable!("it was opened above");
    };
    // Statements are kept with the steps that they took.
    [trail.sql, length_of_list(), end_of_walk(true)]
        .iter()
        .map(|sql| {
            let statement = connection.prepare_cached(sql).unwrap();
            statement.get_status(rusqlite::StatementStatus::VmStep)
        })
        .sum()
}

#[test]
fn a_search_by_tags_costs_the_same_in_a_ledger_of_any_length() {
    let tags = |tags: &[&str]| EntryFilter {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..EntryFilter::default()
    };
    let common = [
        tags(&["success"]),
        tags(&["live_execution", "success"]),
        EntryFilter::default().of_mode(Mode::Run),
    ];
    // No entry has both of the second: they are looked for in vain.
    let rare = [
        tags(&["live_execution", "failure"]),
        tags(&["simulation_mode", "failure"]),
    ];
    let counted = [60_000, 240_000].map(|entries| {
        let (_dir, state, store) = ledger_of(entries);
        for filter in &rare {
            let many = steps(&state, filter);
            assert!(many < RARE_STEPS, "{filter:?}: {many} steps in {entries}");
        }
        // All failures were looked at, since they are the fewest.
        let vain = store.query(&SpaceId::local(), &rare[1]).unwrap();
        assert_eq!((vain.items.len(), vain.next), (0, None));
        common.each_ref().map(|filter| steps(&state, filter))
    });
    for ((filter, few), many) in common.iter().zip(counted[0]).zip(counted[1]) {
        let most = few + few / 50;
        assert!(many <= most, "{filter:?}: {few} and then {many} steps");
    }
}

/// For each entry that a page may look at: counted for two tags, walked, and looked up.
const RARE_STEPS: i32 = 40 * 20_000;

#[test]
fn a_search_in_vain_ends_and_says_where_to_go_on() {
    let (_dir, _state, store) = ledger_of(90_000);
    let space = SpaceId::local();
    let mut filter = EntryFilter {
        tags: vec!["live_execution".to_owned(), "simulation_mode".to_owned()],
        ..EntryFilter::default()
    };
    let mut pages = 0;
    loop {
        let page = store.query(&space, &filter).unwrap();
        assert!(page.items.is_empty());
        pages += 1;
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    // 45000 of each, 20000 a page.
    assert_eq!(pages, 3);
}
