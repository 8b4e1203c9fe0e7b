// Shared conversation: colours of code, copy buttons and typeset math.
import { enhanced } from "../items.js";

enhanced(document.body);
