-- The former column role named the speaker. The new role is one of a closed set, implied by a generic speaker.
ALTER TABLE notes RENAME COLUMN role TO speaker;
ALTER TABLE notes ADD COLUMN role TEXT;
UPDATE notes SET role = CASE WHEN lower(speaker) IN ('user', 'human') THEN 'user'
    WHEN lower(speaker) IN ('assistant', 'ai', 'bot', 'model', 'agent') THEN 'assistant'
    WHEN lower(speaker) IN ('system', 'developer') THEN 'system'
    WHEN lower(speaker) IN ('tool', 'function', 'tool_result', 'function_call_output', 'ipython', 'web', 'browser') THEN 'tool'
    WHEN lower(speaker) IN ('document') THEN 'document'
END
WHERE lower(speaker) IN ('user', 'human', 'assistant', 'ai', 'bot', 'model', 'agent', 'system', 'developer', 'tool', 'function', 'tool_result', 'function_call_output', 'ipython', 'web', 'browser', 'document');
