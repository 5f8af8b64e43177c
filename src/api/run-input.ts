import { z } from 'zod';
import { fields, integer, listOf, oneOf, text } from '../config/fields.ts';

/** Runs that agents outside Switchboard report. */

const longText = z.string({ error: 'must be a string' });
const count = integer(0, Number.MAX_SAFE_INTEGER);
const MAX_DURATION_MS = 366 * 24 * 60 * 60 * 1_000;
const failure = fields({ code: text(256, 1), message: longText });

export const newRun = fields({
  agent: text(256, 1).describe('The name of the agent'),
  model: text(256, 1),
  system: longText.nullable().optional(),
  tools: listOf('names', text(256, 1))
    .nullable()
    .optional()
    .describe('The tools that the agent may use, by name or pattern; null means all'),
  input: longText.describe('The user message that started the run'),
});

export const runCalls = fields({
  calls: listOf(
    'calls',
    fields({
      id: z.uuid({ error: 'must be a uuid' }).describe('Sending an id twice records one call'),
      step: integer(1, 1_000_000).describe('The turn of the model that made the call'),
      tool: text(256, 1),
      server: text(256, 1)
        .nullable()
        .describe('`native` for a tool of the agent itself; null if there is no such tool'),
      status: oneOf(['ok', 'tool_error', 'error']),
      input: z.record(z.string(), z.unknown(), { error: 'must be an object' }),
      output: z.unknown().optional(),
      error: failure.nullable().optional(),
      duration_ms: z
        .number({ error: 'must be a number' })
        .min(0, 'must not be negative')
        .max(MAX_DURATION_MS, 'is too long'),
    }),
  ).min(1, 'must not be empty'),
});

export const runChanges = fields({
  status: oneOf(['completed', 'failed', 'cancelled']).optional().describe('Omit while it runs'),
  output: longText.nullable().optional().describe('The last text of the model'),
  stop_reason: oneOf(['end', 'length', 'refused', 'step_limit']).nullable().optional(),
  steps: count.optional(),
  usage: fields({
    ...{ input_tokens: count, output_tokens: count, cache_read_tokens: count, cache_write_tokens: count },
  })
    .nullable()
    .optional(),
  error: failure.nullable().optional(),
});

export type AgentRunCall = z.infer<typeof runCalls>['calls'][number];
