// Whether a note n is visible and let through.
{{seen}}
  //: when filtered
  AND {{allowed}}
  //: end
