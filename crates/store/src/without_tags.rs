//! Entries from before the audit memory: without its tags, and with less in their bodies.

use glovebox_model::{Exec, Mode, SpaceId, Status};
use serde_json::{Value, json};

use crate::ledger::encoding::canonical;
use crate::ledger::{EntryFilter, Expectations, ExportFormat, TimelineFilter, verify_export};
use crate::rows::{self, StoredRecord};
use crate::state_dir::StateDir;
use crate::store::Store;
use crate::summary;

fn record(number: u8) -> Exec {
    let text = include_str!("../examples/record.json");
    let mut record: Exec = serde_json::from_str(text).unwrap();
    record.exec_id = glovebox_model::ExecId::from_random([number; 16]);
    record.ids.task_id = Some("t".to_owned());
    record
}

/// As the version before wrote an end.
fn close_as_before(store: &Store, mut record: Exec) {
    let _opened = store.plan("o", &record).unwrap();
    record.status = Status::Succeeded;
    let stored = StoredRecord::new(&record).unwrap();
    let mut draft = summary::outcome(&record, &stored);
    draft.tags = canonical(&json!(["project:proj", "status:succeeded"]));
    let mut body: Value = serde_json::from_str(&draft.body).unwrap();
    for new in ["provenance", "state", "effects", "gates"] {
        body.as_object_mut().unwrap().remove(new);
    }
    draft.body = canonical(&body);
    let id = (record.ids.space_id, record.exec_id);
    store
        .write(move |chains| {
            let link = chains.append(draft)?;
            rows::close(chains.session(), &id, &stored, link)
        })
        .unwrap();
}

#[test]
fn entries_without_tags_verify_and_are_found_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = Store::open(&state).unwrap();
    let space = SpaceId::local();
    for number in 0..40 {
        close_as_before(&store, record(number));
    }
    let mut now = record(40);
    let opened = store.plan("o", &now).unwrap();
    now.status = Status::Succeeded;
    store.close(opened, now).unwrap();

    let verified = store.verify(&space, &Expectations::default()).unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    let mut exported = Vec::new();
    store
        .export(&space, ExportFormat::Jsonl, &mut exported)
        .unwrap();
    let verified = verify_export(exported.as_slice(), &Expectations::default()).unwrap();
    assert!(verified.is_sound(), "{verified:?}");

    let count = |filter: EntryFilter| store.query(&space, &filter).unwrap().items.len();
    let tagged = |tag: &str| EntryFilter {
        tags: vec![tag.to_owned()],
        ..EntryFilter::default()
    };
    assert_eq!(count(tagged("status:succeeded")), 41);
    assert_eq!(count(tagged("success")), 1);
    assert_eq!(count(EntryFilter::default().of_mode(Mode::Run)), 1);
    let timeline = store.timeline(
        &space,
        &TimelineFilter {
            task_id: "t".to_owned(),
            ..TimelineFilter::default()
        },
    );
    let steps = timeline.unwrap().steps;
    assert_eq!(steps.len(), 41);
    assert!(
        steps
            .iter()
            .all(|step| step.planned.is_some() && step.outcome.is_some())
    );
}
