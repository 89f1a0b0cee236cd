//! The protobuf form has the fields of the JSON form, at the numbers that Go knows.

use serde_json::json;

use super::super::gnostic::encode;
use super::{Form, contents, inflate};

#[test]
fn values_are_written_at_their_numbers() {
    let document = json!({"swagger": "2.0", "info": {"title": "T", "version": "V"}});
    let expected = b"\x12\x06\x0a\x01T\x12\x01V\x0a\x032.0";
    assert_eq!(encode(&document), expected);
}

#[test]
fn a_definition_has_its_type_properties_and_extensions() {
    let schema = json!({"type": "string", "minLength": 1, "x-a": true});
    let document = json!({"definitions": {"D": schema}});
    // minLength = 12, type = 22 {value = 1}, vendor_extension = 31 {name = 1, value = 2 {yaml = 2}}
    let schema = b"\x60\x01\xb2\x01\x08\x0a\x06string\xfa\x01\x0d\x0a\x03x-a\x12\x06\x12\x04true";
    let mut expected = vec![0x4a, schema.len() as u8 + 7, 0x0a, schema.len() as u8 + 5];
    expected.extend_from_slice(b"\x0a\x01D\x12");
    expected.push(schema.len() as u8);
    expected.extend_from_slice(schema);
    assert_eq!(encode(&document), expected);
}

#[test]
fn parameters_are_told_apart_by_where_they_are() {
    let with =
        |parameter| encode(&json!({"paths": {"/": {"parameters": [parameter]}}})).split_off(11);
    assert_eq!(with(json!({"$ref": "#/x"})), b"\x12\x05\x0a\x03#/x");
    assert_eq!(with(json!({"in": "query"})), b"\x0a\x0b\x12\x09\x1a\x07\x12\x05query");
    assert_eq!(with(json!({"in": "path"})), b"\x0a\x0a\x12\x08\x22\x06\x12\x04path");
    assert_eq!(with(json!({"in": "body"})), b"\x0a\x08\x0a\x06\x1a\x04body");
}

#[test]
fn the_whole_document_is_written_and_smaller_than_json() {
    let protobuf = inflate(&contents(Form::V2Protobuf).v2_protobuf().gzip()).unwrap();
    let json = inflate(&contents(Form::V2).v2().gzip()).unwrap();
    assert!(protobuf.len() > json.len() / 4 && protobuf.len() < json.len());
}
