use serde_json::{Value, json};

use super::*;
use crate::field::messages;

fn template() -> Value {
    json!({"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "busybox:1"}],
    }})
}

fn cron(schedule: &str) -> Value {
    let mut cron = json!({
        "metadata": {"name": "c"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template()}}},
    });
    RULES.fill_in(&mut cron);
    cron
}

#[test]
fn schedules_are_read_as_cron_reads_them() {
    for good in [
        "*/5 * * * *",
        "@hourly",
        "@every 1h30m",
        "0 0 1 jan sun",
        "0-30/10,45 * ? * MON-FRI",
        "59 23 31 12 6",
        "5/15 * * * *",
    ] {
        assert_eq!(messages(&RULES.validate_create(&cron(good))), Vec::<String>::new(), "{good}");
    }
    for (bad, why) in [
        ("* *", "expected exactly 5 fields, found 2: [* *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ("@nope", "unrecognized descriptor: @nope"),
        ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
        ("@every .h", "failed to parse duration @every .h: time: invalid duration \".h\""),
        (
            "@every 1d",
            "failed to parse duration @every 1d: time: unknown unit \"d\" in duration \"1d\"",
        ),
        (
            "9223372036854775808 * * * *",
            "failed to parse int from 9223372036854775808: strconv.Atoi: parsing \
             \"9223372036854775808\": value out of range",
        ),
    ] {
        let errors = messages(&RULES.validate_create(&cron(bad)));
        assert_eq!(errors, [format!("spec.schedule: Invalid value: {bad:?}: {why}")]);
    }
    assert_eq!(messages(&RULES.validate_create(&cron(""))), ["spec.schedule: Required value"]);
}

#[test]
fn a_time_zone_stands_in_its_own_field() {
    let zoned = cron("TZ=UTC * * * * *");
    assert_eq!(
        messages(&RULES.validate_create(&zoned)),
        ["spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in \
          schedule, use timeZone field instead"]
    );
    assert!(RULES.validate_update(&zoned, &zoned).is_empty(), "it always had one");
    let own = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
    for (schedule, why) in [
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("CRON_TZ=UTC", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Nowhere * * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
        ("TZ=/UTC * * * * *", "provided bad location /UTC: time: invalid location name"),
        ("TZ= * * * *", "expected exactly 5 fields, found 4: [* * * *]"),
    ] {
        let errors = messages(&RULES.validate_create(&cron(schedule)));
        let expected =
            [why, own].map(|why| format!("spec.schedule: Invalid value: {schedule:?}: {why}"));
        assert_eq!(errors, expected);
    }
    for (zone, whys) in [
        ("UTC", vec![]),
        ("Europe/Athens", vec![]),
        ("bad-time-zone", vec!["unknown time zone bad-time-zone"]),
        ("europe/athens", vec!["unknown time zone europe/athens"]),
        ("../../..", vec!["unknown time zone ../../.."]),
        ("", vec!["timeZone must be nil or non-empty string"]),
        ("../etc", vec!["unknown time zone ../etc"]),
        ("a..b", vec!["time: invalid location name"]),
        (
            "Local",
            vec![
                "timeZone must be an explicit time zone as defined in \
                 https://www.iana.org/time-zones",
            ],
        ),
        (
            "local",
            vec![
                "timeZone must be an explicit time zone as defined in \
                 https://www.iana.org/time-zones",
                "unknown time zone local",
            ],
        ),
    ] {
        assert_eq!(schedule::time_zone(zone), whys, "{zone}");
    }
}

#[test]
fn a_time_zone_in_the_schedule_is_warned_of_whenever_the_cron_job_changes() {
    let zoned = cron("TZ=UTC * * * * *");
    assert_eq!(RULES.warnings(&zoned, None), [""; 0], "it is refused");
    assert_eq!(
        RULES.warnings(&zoned, Some(&zoned)),
        ["cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
          https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"]
    );
}

#[test]
fn mistakes_of_a_cron_job() {
    let mut long = cron("@daily");
    long["metadata"]["name"] = json!("c".repeat(53));
    assert_eq!(RULES.validate_create(&long)[0].field, "metadata.name");
    assert!(RULES.validate_update(&long, &long).is_empty(), "what exists may go on");

    let mut cron = cron("@daily");
    cron["spec"]["concurrencyPolicy"] = json!("Maybe");
    cron["spec"]["jobTemplate"]["spec"]["selector"] = json!({});
    cron["spec"]["successfulJobsHistoryLimit"] = json!(-1);
    assert_eq!(
        messages(&RULES.validate_create(&cron)),
        [
            "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allow\", \
          \"Forbid\", \"Replace\"",
            "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
            "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"
        ]
    );
}

#[test]
fn the_pods_of_a_cron_job_are_filled_in_but_not_the_job() {
    let cron = cron("@daily");
    let job = &cron["spec"]["jobTemplate"]["spec"];
    assert_eq!(job["template"]["spec"]["containers"][0]["resources"], json!({}));
    assert!(job["backoffLimit"].is_null());
}
