import { expect } from 'vitest';
import { askedUri } from '../../fixtures/eras/lists.ts';
import { modelQuestion, nameQuestion } from '../../fixtures/eras/questions.ts';
import { textOf } from '../messages.ts';
import type { Answers, ElicitAnswer, Question, SampleAnswer } from '../peer.ts';
import type { Feature } from './feature.ts';

const ada: ElicitAnswer = { action: 'accept', content: { name: 'Ada' } };
const blue: ElicitAnswer = { action: 'accept', content: { colour: 'blue' } };
const declined: ElicitAnswer = { action: 'decline' };
const model: SampleAnswer = {
  role: 'assistant',
  model: 'a-model',
  content: { type: 'text', text: 'I am a model' },
};
const roots = [{ uri: 'file:///home/ada', name: 'home' }];

/** A user who enters her name, and records the server requests. */
function someone(answer: (question: Question) => ElicitAnswer = () => ada) {
  const questions: Question[] = [];
  const elicit = (question: Question) => {
    questions.push(question);
    return answer(question);
  };
  return { questions, elicit };
}

function asking(name: string, tool: string, answers: Answers, learnt: object): Feature {
  return {
    name,
    async run(scene) {
      await using peer = await scene.connect(answers);
      expect(JSON.parse(textOf(await peer.callTool(tool)))).toMatchObject(learnt);
    },
  };
}

export const questionFeatures: Feature[] = [
  {
    name: 'a tool asks the user, with its message and form',
    async run(scene) {
      const { questions, elicit } = someone();
      await using peer = await scene.connect({ elicit });
      expect(JSON.parse(textOf(await peer.callTool('ask_name')))).toEqual({ name: ada });
      expect(questions).toMatchObject([nameQuestion]);
    },
  },
  asking('a tool gets the refusal of the user', 'ask_name', { elicit: () => declined }, { name: declined }),
  {
    name: 'a tool asks a second time with the first response',
    async run(scene) {
      const { questions, elicit } = someone(({ message }) => (message.includes('colour') ? blue : ada));
      await using peer = await scene.connect({ elicit });
      expect(JSON.parse(textOf(await peer.callTool('ask_twice')))).toEqual({ name: ada, colour: blue });
      expect(questions.map(({ message }) => message)).toEqual([
        'What is your name?',
        'What is your favourite colour, Ada?',
      ]);
    },
  },
  {
    name: 'a tool asks the model',
    async run(scene) {
      const prompts: unknown[] = [];
      const sample = ({ messages }: { messages: unknown[] }) => {
        prompts.push(...messages);
        return model;
      };
      await using peer = await scene.connect({ sample });
      expect(JSON.parse(textOf(await peer.callTool('ask_model')))).toMatchObject({ model });
      expect(prompts).toEqual(modelQuestion.messages);
    },
  },
  asking('a tool asks for the roots', 'ask_roots', { roots: () => roots }, { roots: { roots } }),
  asking(
    'a tool asks the user and the model at once',
    'ask_both',
    { elicit: () => ada, sample: () => model },
    { name: ada, model },
  ),
  {
    name: 'a prompt asks the user',
    async run(scene) {
      await using peer = await scene.connect(someone());
      expect(JSON.parse(await peer.getPrompt('ask_prompt'))).toEqual({ name: ada });
    },
  },
  {
    name: 'a resource asks the user',
    async run(scene) {
      await using peer = await scene.connect(someone());
      const [asked] = await peer.readResource(scene.uri(askedUri));
      expect(JSON.parse(asked!.text!)).toEqual({ name: ada });
    },
  },
  {
    name: 'a client without support for server requests gets an error',
    async run(scene) {
      await using peer = await scene.connect();
      const refusal = await peer.callTool('ask_name').then(
        (result) => result.isError && textOf(result),
        (error: Error) => error.message,
      );
      expect(refusal).toMatch(/elicitation/i);
    },
  },
];
