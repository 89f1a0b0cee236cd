//! Memory is given back when objects go: measured, in a process of its own.
#![cfg(target_os = "linux")] // where a process can read its own memory

use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::*;
use crate::codec::Codec;

/// Set in the process that measures.
const MEASURE: &str = "STEERSMAN_MEASURE_MEMORY";
const PAGE: usize = 500;

#[test]
fn memory_falls_when_nearly_all_objects_are_deleted() {
    match std::env::var(MEASURE).as_deref() {
        // Those that stay are spread over all pages of the list: if one kept its page alive, all
        // would be.
        Ok("typed") => measure(Form::Typed, 6_000, |number| number % 100 == 0),
        // Compact objects are so small that many share a block of the allocator, which cannot go
        // while one of them stays; so here those that stay are neighbours, as in a namespace.
        Ok("compact") => measure(Form::Compact { recent: 16 }, 20_000, |number| number < 200),
        _ => ["typed", "compact"].into_iter().for_each(in_another_process),
    }
}

/// Runs this test alone in a fresh process, which has no memory but what it measures.
fn in_another_process(form: &str) {
    let name = "cache::tests::memory::memory_falls_when_nearly_all_objects_are_deleted";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(MEASURE, form)
        .env("MIMALLOC_PURGE_DELAY", "0") // freed pages go back at once
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{form}: {said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{form} was not measured: {said}");
}

fn measure(form: Form, pods: usize, stays: fn(usize) -> bool) {
    let (mut writer, cache) = channel::<Pod>();
    let mut decoder = Decoder::new(Codec::of::<Pod>(), form);
    let start = resident();
    for page in 0..2 {
        drop(decode(&mut decoder, &list(page))); // what is kept once, however many there are
    }
    let empty = resident();
    for page in 0..pods / PAGE {
        let objects = decode(&mut decoder, &list(page * PAGE));
        writer.apply(objects);
    }
    assert_eq!(cache.len(), pods);
    let full = resident();
    for (number, item) in cache.snapshot().iter().enumerate() {
        if !stays(number) {
            writer.delete(&item.cast());
        }
    }
    assert_eq!(cache.len(), pods / 100);
    let after = resident();
    let held = full.saturating_sub(empty);
    let left = after.saturating_sub(empty);
    println!(
        "{form:?}: {} bytes once, {held} bytes for {pods} Pods, {left} for a hundredth of them",
        empty - start
    );
    assert!(held > 4 * 1024 * 1024, "{held} bytes are too few to tell anything");
    assert!(left * 2 < held, "{held} bytes for all, {left} for a hundredth");
}

/// A page of a list, as a server sends it.
fn list(first: usize) -> String {
    let pods: Vec<String> = (first..first + PAGE).map(pod).collect();
    format!(r#"{{"items":[{}]}}"#, pods.join(","))
}

fn pod(number: usize) -> String {
    serde_json::json!({
        "metadata": {
            "namespace": "default", "name": format!("web-{number:05}"),
            "uid": format!("{number:032x}"), "resourceVersion": number.to_string(),
            "labels": {"app": "web", "shard": (number % 7).to_string()},
            "annotations": {"checksum": format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15))},
        },
        "spec": {
            "nodeName": format!("node-{}", number % 50),
            "containers": [{"name": "main", "image": "registry/web:v1",
                            "env": [{"name": "NUMBER", "value": number.to_string()}]}],
        },
        "status": {"phase": "Running", "podIP": format!("10.0.{}.{}", number / 250, number % 250)},
    })
    .to_string()
}

fn decode(decoder: &mut Decoder, list: &str) -> Vec<Item<Untyped>> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    let list: List<'_> = serde_json::from_str(list).unwrap();
    list.items.iter().map(|raw| decoder.decode(raw.get()).unwrap()).collect()
}

/// The memory of this process that lies in RAM.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
