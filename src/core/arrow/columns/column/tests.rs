use arrow_array::{DictionaryArray, StringArray};

use super::*;

#[test]
fn each_category_has_one_key_in_its_batch() {
    let mut categories = Categories::default();
    for batch in 0..2 {
        let texts: Vec<String> = (0..40).map(|at| format!("{batch}-{}", at % 9)).collect();
        texts.iter().for_each(|text| categories.append_value(text));
        categories.append_null();
        let mut arrays = Vec::new();
        categories.finish_into(&mut arrays).unwrap();
        let column = arrays.first().unwrap().as_any().downcast_ref();
        let column: &DictionaryArray<Int32Type> = column.unwrap();
        assert_eq!(column.values().len(), 9);
        let values = column.downcast_dict::<StringArray>().unwrap();
        let read: Vec<Option<&str>> = values.into_iter().collect();
        let mut expected: Vec<Option<&str>> = texts.iter().map(|text| Some(&**text)).collect();
        expected.push(None);
        assert_eq!(read, expected);
    }
}
