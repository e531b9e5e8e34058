// True if a note n is visible and passes the filter.
{{note_visible}}
  //: when filtered
  AND {{filter}}
  //: end
