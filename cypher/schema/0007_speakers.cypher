// The former property role contained the speaker. Now role has one of a few values, which a generic speaker implies.

MATCH (n:Note) WHERE n.speaker IS NULL AND n.role IS NOT NULL
SET n.speaker = n.role, n.role = CASE WHEN toLower(n.role) IN ['user', 'human'] THEN 'user'
    WHEN toLower(n.role) IN ['assistant', 'ai', 'bot', 'model', 'agent'] THEN 'assistant'
    WHEN toLower(n.role) IN ['system', 'developer'] THEN 'system'
    WHEN toLower(n.role) IN ['tool', 'function', 'tool_result', 'function_call_output', 'ipython', 'web', 'browser'] THEN 'tool'
    WHEN toLower(n.role) IN ['document'] THEN 'document'
END;

MATCH (n:Event) WHERE n.speaker IS NULL AND n.role IS NOT NULL
SET n.speaker = n.role, n.role = CASE WHEN toLower(n.role) IN ['user', 'human'] THEN 'user'
    WHEN toLower(n.role) IN ['assistant', 'ai', 'bot', 'model', 'agent'] THEN 'assistant'
    WHEN toLower(n.role) IN ['system', 'developer'] THEN 'system'
    WHEN toLower(n.role) IN ['tool', 'function', 'tool_result', 'function_call_output', 'ipython', 'web', 'browser'] THEN 'tool'
    WHEN toLower(n.role) IN ['document'] THEN 'document'
END;
